#include <gpusched/model/impl/apply.ipp>
