#include <gpusched/io/impl/file.ipp>
