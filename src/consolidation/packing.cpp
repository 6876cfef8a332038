#include <gpusched/consolidation/impl/packing.ipp>
