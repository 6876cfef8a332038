#include <gpusched/milp/impl/serving_plan.ipp>
