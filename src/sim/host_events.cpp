#include <gpusched/sim/impl/host_events.ipp>
