#include <gpusched/topology/impl/dot.ipp>
