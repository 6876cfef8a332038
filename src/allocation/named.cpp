#include <gpusched/allocation/impl/named.ipp>
