#include <gpusched/sim/impl/host.ipp>
