#include <gpusched/model/impl/inventory.ipp>
