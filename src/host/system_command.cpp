#include <gpusched/host/impl/system_command.ipp>
