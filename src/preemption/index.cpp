#include <gpusched/preemption/impl/index.ipp>
