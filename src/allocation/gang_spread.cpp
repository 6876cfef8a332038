#include <gpusched/allocation/impl/gang_spread.ipp>
