#include <gpusched/consolidation/impl/result.ipp>
