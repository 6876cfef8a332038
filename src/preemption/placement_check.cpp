#include <gpusched/preemption/impl/placement_check.ipp>
