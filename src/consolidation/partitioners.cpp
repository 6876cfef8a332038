#include <gpusched/consolidation/impl/partitioners.ipp>
