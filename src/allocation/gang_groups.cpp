#include <gpusched/allocation/impl/gang_groups.ipp>
