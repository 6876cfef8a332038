#include <gpusched/milp/impl/highs.ipp>
