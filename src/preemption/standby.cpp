#include <gpusched/preemption/impl/standby.ipp>
