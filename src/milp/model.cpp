#include <gpusched/milp/impl/model.ipp>
