#include <gpusched/serving/impl/greedy_plan.ipp>
