#include <gpusched/serving/impl/simulate_latency.ipp>
