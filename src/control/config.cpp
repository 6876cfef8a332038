#include <gpusched/control/impl/config.ipp>
