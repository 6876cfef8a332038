#include <gpusched/fragmentation/impl/switch_slots.ipp>
