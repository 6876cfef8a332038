#include <gpusched/allocation/impl/switch_counts.ipp>
