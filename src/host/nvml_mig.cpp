#include <gpusched/host/impl/nvml_mig.ipp>
