#include <gpusched/preemption/impl/node_answer.ipp>
