#include <gpusched/io/impl/anonymize.ipp>
