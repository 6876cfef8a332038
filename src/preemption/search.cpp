#include <gpusched/preemption/impl/search.ipp>
