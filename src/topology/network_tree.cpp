#include <gpusched/topology/impl/network_tree.ipp>
