#include <gpusched/io/impl/json_document.ipp>
