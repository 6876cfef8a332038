#include <gpusched/topology/impl/hardware_graph.ipp>
