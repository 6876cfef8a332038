#include <gpusched/preemption/impl/explain.ipp>
