#include <gpusched/milp/impl/greedy_plan.ipp>
