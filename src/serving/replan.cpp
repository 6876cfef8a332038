#include <gpusched/serving/impl/replan.ipp>
