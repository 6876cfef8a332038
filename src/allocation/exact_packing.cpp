#include <gpusched/allocation/impl/exact_packing.ipp>
