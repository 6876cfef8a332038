#include <gpusched/control/impl/host_actuator.ipp>
