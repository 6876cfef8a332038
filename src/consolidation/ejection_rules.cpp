#include <gpusched/consolidation/impl/ejection_rules.ipp>
