#include <gpusched/control/impl/nvml.ipp>
