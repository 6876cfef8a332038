#include <gpusched/control/impl/estimators.ipp>
