#include <gpusched/io/impl/cluster_json.ipp>
