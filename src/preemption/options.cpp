#include <gpusched/preemption/impl/options.ipp>
