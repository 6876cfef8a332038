#include <gpusched/model/impl/plan.ipp>
