#include <gpusched/control/impl/live_probe.ipp>
