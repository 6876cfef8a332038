#include <gpusched/host/impl/latency_histogram.ipp>
