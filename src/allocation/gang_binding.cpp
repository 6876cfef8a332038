#include <gpusched/allocation/impl/gang_binding.ipp>
