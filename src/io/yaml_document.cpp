#include <gpusched/io/impl/yaml_document.ipp>
