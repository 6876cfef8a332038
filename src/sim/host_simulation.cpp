#include <gpusched/sim/impl/host_simulation.ipp>
