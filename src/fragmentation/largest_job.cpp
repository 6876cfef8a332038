#include <gpusched/fragmentation/impl/largest_job.ipp>
