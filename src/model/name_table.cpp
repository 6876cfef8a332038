#include <gpusched/model/impl/name_table.ipp>
