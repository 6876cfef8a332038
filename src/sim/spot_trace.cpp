#include <gpusched/sim/impl/spot_trace.ipp>
