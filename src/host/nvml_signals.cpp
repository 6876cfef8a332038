#include <gpusched/host/impl/nvml_signals.ipp>
