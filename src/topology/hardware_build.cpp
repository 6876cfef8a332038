#include <gpusched/topology/impl/hardware_build.ipp>
