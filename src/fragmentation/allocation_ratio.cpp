#include <gpusched/fragmentation/impl/allocation_ratio.ipp>
