#include <gpusched/host/impl/live_config.ipp>
