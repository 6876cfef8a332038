#include <gpusched/sim/impl/generator.ipp>
