#include <gpusched/fragmentation/impl/fgd.ipp>
