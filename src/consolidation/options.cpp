#include <gpusched/consolidation/impl/options.ipp>
