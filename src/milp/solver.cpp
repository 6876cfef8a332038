#include <gpusched/milp/impl/solver.ipp>
