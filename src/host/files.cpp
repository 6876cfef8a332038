#include <gpusched/host/impl/files.ipp>
