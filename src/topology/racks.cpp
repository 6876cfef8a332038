#include <gpusched/topology/impl/racks.ipp>
