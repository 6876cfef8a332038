#include <gpusched/io/impl/slurm_topology.ipp>
