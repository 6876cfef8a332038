#include <gpusched/host/impl/latency_source.ipp>
