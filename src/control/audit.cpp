#include <gpusched/control/impl/audit.ipp>
