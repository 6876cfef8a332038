#include <gpusched/host/impl/mps.ipp>
