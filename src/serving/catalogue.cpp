#include <gpusched/serving/impl/catalogue.ipp>
