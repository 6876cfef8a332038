#include <gpusched/control/impl/tail_model.ipp>
