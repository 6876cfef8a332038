#include <gpusched/core/impl/executor.ipp>
