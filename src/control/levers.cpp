#include <gpusched/control/impl/levers.ipp>
