#include <gpusched/control/impl/state.ipp>
