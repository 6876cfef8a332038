#include <gpusched/control/impl/recovery.ipp>
