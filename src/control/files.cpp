#include <gpusched/control/impl/files.ipp>
