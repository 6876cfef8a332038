#include <gpusched/io/impl/network_reading.ipp>
