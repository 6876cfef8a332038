#include <gpusched/serving/impl/serving_plan.ipp>
