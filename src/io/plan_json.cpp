#include <gpusched/io/impl/plan_json.ipp>
