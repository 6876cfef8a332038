#include <gpusched/host/impl/journal.ipp>
