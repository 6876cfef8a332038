#include <gpusched/control/impl/options_hash.ipp>
