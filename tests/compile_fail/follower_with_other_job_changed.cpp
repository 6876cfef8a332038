// expect: hook .job_changed. that would never be called: expected .void job_changed
// A follower that would never hear of changes.
#include <gpusched/model/follower.hpp>

using namespace gpusched;

struct Mine {
    void rebuild(const Cluster&) {}
    void usage_changed(const Cluster&, NodeId) {}
#ifdef GPUSCHED_CONTROL
    void job_changed(const Cluster&, JobId) {}
#else
    void job_changed(JobId) {}
#endif
};

Followed<Mine> followed;
