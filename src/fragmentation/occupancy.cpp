#include <gpusched/fragmentation/impl/occupancy.ipp>
