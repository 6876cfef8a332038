#include <gpusched/host/impl/proc_signals.ipp>
