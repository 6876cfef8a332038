#include <gpusched/fragmentation/impl/workload.ipp>
