#include <gpusched/fragmentation/impl/report.ipp>
