// expect: hook .usage_changed. that would never be called: expected .void usage_changed
// A follower that would never hear of changes.
#include <gpusched/model/follower.hpp>

using namespace gpusched;

struct Mine {
    void rebuild(const Cluster&) {}
#ifdef GPUSCHED_CONTROL
    void usage_changed(const Cluster&, NodeId) {}
#else
    void usage_changed(NodeId) {}
#endif
};

Followed<Mine> followed;
