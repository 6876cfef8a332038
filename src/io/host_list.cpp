#include <gpusched/io/impl/host_list.ipp>
