#include <gpusched/sim/impl/resample.ipp>
