#include <gpusched/io/impl/plan_csv.ipp>
