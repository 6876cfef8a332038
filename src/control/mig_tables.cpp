#include <gpusched/control/impl/mig_tables.ipp>
