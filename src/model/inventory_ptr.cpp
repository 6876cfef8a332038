#include <gpusched/model/impl/inventory_ptr.ipp>
