#include <gpusched/control/impl/live.ipp>
