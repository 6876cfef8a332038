#include <gpusched/consolidation/impl/bound.ipp>
