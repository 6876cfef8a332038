#include <gpusched/milp/impl/consolidation.ipp>
