#include <gpusched/control/impl/latency_source.ipp>
