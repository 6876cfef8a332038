#include <gpusched/serving/impl/solve_serving_plan.ipp>
