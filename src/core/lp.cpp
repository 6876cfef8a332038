#include <gpusched/core/impl/lp.ipp>
