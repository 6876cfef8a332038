#include <gpusched/control/impl/diagnose.ipp>
