#include <gpusched/milp/impl/write.ipp>
