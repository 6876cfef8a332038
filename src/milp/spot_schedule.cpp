#include <gpusched/milp/impl/spot_schedule.ipp>
