// expect: hook .time_changed. that would never be called: expected .void time_changed
// A follower that would never hear of changes.
#include <gpusched/model/follower.hpp>

using namespace gpusched;

struct Mine {
    void rebuild(const Cluster&) {}
    void usage_changed(const Cluster&, NodeId) {}
#ifdef GPUSCHED_CONTROL
    void time_changed(const Cluster&) {}
#else
    void time_changed(std::int64_t) {}
#endif
};

Followed<Mine> followed;
