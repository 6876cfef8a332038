#include <gpusched/control/impl/nvml_signals.ipp>
