#include <gpusched/allocation/impl/allocate_many.ipp>
