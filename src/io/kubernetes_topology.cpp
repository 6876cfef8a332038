#include <gpusched/io/impl/kubernetes_topology.ipp>
