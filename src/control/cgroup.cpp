#include <gpusched/control/impl/cgroup.ipp>
