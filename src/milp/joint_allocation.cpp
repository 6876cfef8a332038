#include <gpusched/milp/impl/joint_allocation.ipp>
