#include <gpusched/milp/impl/serving_bounds.ipp>
