#include <gpusched/allocation/impl/job_request.ipp>
