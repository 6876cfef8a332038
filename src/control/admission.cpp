#include <gpusched/control/impl/admission.ipp>
