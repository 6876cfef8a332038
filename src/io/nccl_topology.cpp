#include <gpusched/io/impl/nccl_topology.ipp>
