#include <gpusched/consolidation/impl/explain.ipp>
