#include <gpusched/topology/impl/hardware_dot.ipp>
