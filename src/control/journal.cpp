#include <gpusched/control/impl/journal.ipp>
