#include <gpusched/sim/impl/spot_replay.ipp>
