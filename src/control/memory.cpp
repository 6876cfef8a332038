#include <gpusched/control/impl/memory.ipp>
