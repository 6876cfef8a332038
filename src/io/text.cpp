#include <gpusched/io/impl/text.ipp>
