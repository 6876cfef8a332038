#include <gpusched/serving/impl/profile_csv.ipp>
