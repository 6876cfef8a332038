#include <gpusched/milp/impl/priority_packing.ipp>
