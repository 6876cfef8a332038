#include <gpusched/serving/impl/plan_serving.ipp>
