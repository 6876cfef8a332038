#include <gpusched/allocation/impl/gang.ipp>
