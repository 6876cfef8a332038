#include <gpusched/fragmentation/impl/fragment_rate.ipp>
