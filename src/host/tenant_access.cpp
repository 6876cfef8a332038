#include <gpusched/host/impl/tenant_access.ipp>
