#include <gpusched/host/impl/recovery.ipp>
