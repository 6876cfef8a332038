#include <gpusched/serving/impl/serving_bounds.ipp>
