#include <gpusched/serving/impl/deployment.ipp>
