#include <gpusched/allocation/impl/place.ipp>
