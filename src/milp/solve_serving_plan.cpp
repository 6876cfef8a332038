#include <gpusched/milp/impl/solve_serving_plan.ipp>
