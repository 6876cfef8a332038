#include <gpusched/consolidation/impl/plan_statistics.ipp>
