#include <gpusched/control/impl/nvidia_smi.ipp>
