#include <gpusched/consolidation/impl/exact_search.ipp>
