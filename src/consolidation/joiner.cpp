#include <gpusched/consolidation/impl/joiner.ipp>
