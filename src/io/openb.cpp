#include <gpusched/io/impl/openb.ipp>
