#include <gpusched/preemption/impl/preempt_gang.ipp>
