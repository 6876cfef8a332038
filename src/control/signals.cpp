#include <gpusched/control/impl/signals.ipp>
