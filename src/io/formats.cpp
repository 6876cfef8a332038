#include <gpusched/io/impl/formats.ipp>
