#include <gpusched/control/impl/nvml_mig.ipp>
