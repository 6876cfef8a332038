#include <gpusched/verify/impl/plan.ipp>
