#include <gpusched/allocation/impl/power_of_d.ipp>
