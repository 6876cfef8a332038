#include <gpusched/io/impl/pod_migration_jobs.ipp>
