#include <gpusched/host/impl/live_probe.ipp>
