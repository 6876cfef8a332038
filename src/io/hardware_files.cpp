#include <gpusched/io/impl/hardware_files.ipp>
