#include <gpusched/control/impl/tenant_access.ipp>
