#include <gpusched/preemption/impl/gang_table.ipp>
