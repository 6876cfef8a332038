#include <gpusched/milp/impl/serving_problem.ipp>
