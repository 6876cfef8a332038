#include <gpusched/host/impl/live.ipp>
