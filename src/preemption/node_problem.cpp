#include <gpusched/preemption/impl/node_problem.ipp>
