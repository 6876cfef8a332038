#include <gpusched/serving/impl/language_model.ipp>
