#include <gpusched/consolidation/impl/consolidate.ipp>
