#include <gpusched/control/impl/proc_signals.ipp>
