#include <gpusched/model/impl/hardware.ipp>
