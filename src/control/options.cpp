#include <gpusched/control/impl/options.ipp>
