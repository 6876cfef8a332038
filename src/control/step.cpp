#include <gpusched/control/impl/step.ipp>
