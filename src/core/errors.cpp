#include <gpusched/core/impl/errors.ipp>
