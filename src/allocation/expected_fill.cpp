#include <gpusched/allocation/impl/expected_fill.ipp>
