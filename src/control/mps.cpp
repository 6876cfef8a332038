#include <gpusched/control/impl/mps.ipp>
