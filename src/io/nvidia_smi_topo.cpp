#include <gpusched/io/impl/nvidia_smi_topo.ipp>
