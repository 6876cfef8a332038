#include <gpusched/io/impl/hwloc.ipp>
