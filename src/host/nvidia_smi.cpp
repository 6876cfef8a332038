#include <gpusched/host/impl/nvidia_smi.ipp>
