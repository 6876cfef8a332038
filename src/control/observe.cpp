#include <gpusched/control/impl/observe.ipp>
