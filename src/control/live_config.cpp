#include <gpusched/control/impl/live_config.ipp>
