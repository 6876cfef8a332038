#include <gpusched/io/impl/flextopo.ipp>
