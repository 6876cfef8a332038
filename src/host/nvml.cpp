#include <gpusched/host/impl/nvml.ipp>
