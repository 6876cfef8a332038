#include <gpusched/allocation/impl/wishes.ipp>
