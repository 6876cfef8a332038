#include <gpusched/consolidation/impl/bin_packing.ipp>
