#include <gpusched/milp/impl/cbc.ipp>
