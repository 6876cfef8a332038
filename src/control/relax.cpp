#include <gpusched/control/impl/relax.ipp>
