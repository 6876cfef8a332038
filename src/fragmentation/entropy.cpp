#include <gpusched/fragmentation/impl/entropy.ipp>
