#include <gpusched/control/impl/mig_layout.ipp>
