#include <gpusched/allocation/impl/allocate.ipp>
