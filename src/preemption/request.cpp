#include <gpusched/preemption/impl/request.ipp>
