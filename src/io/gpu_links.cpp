#include <gpusched/io/impl/gpu_links.ipp>
