#include <gpusched/io/impl/this_machine.ipp>
