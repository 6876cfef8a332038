#include <gpusched/model/impl/describe_obstacle.ipp>
