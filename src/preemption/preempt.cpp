#include <gpusched/preemption/impl/preempt.ipp>
