#include <gpusched/control/impl/system_command.ipp>
