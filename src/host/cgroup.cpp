#include <gpusched/host/impl/cgroup.ipp>
