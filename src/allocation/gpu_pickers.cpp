#include <gpusched/allocation/impl/gpu_pickers.ipp>
