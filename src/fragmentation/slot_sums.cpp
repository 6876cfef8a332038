#include <gpusched/fragmentation/impl/slot_sums.ipp>
