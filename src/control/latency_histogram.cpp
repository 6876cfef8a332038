#include <gpusched/control/impl/latency_histogram.ipp>
