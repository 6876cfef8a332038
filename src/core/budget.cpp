#include <gpusched/core/impl/budget.ipp>
