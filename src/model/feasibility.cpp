#include <gpusched/model/impl/feasibility.ipp>
