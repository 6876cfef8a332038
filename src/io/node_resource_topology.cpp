#include <gpusched/io/impl/node_resource_topology.ipp>
