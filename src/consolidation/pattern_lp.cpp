#include <gpusched/consolidation/impl/pattern_lp.ipp>
