#include <gpusched/serving/impl/serving_problem.ipp>
