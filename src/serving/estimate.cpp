#include <gpusched/serving/impl/estimate.ipp>
