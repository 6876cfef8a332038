#include <gpusched/sim/impl/replay.ipp>
