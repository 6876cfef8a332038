#include <gpusched/consolidation/impl/scope.ipp>
