#include <gpusched/io/impl/hardware_parts.ipp>
