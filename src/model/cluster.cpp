#include <gpusched/model/impl/cluster.ipp>
