// expect: hook .budgets_changed. that would never be called: expected .void budgets_changed
// A follower that would never hear of changes.
#include <gpusched/model/follower.hpp>

using namespace gpusched;

struct Mine {
    void rebuild(const Cluster&) {}
    void usage_changed(const Cluster&, NodeId) {}
#ifdef GPUSCHED_CONTROL
    void budgets_changed(const Cluster&) {}
#else
    void budgets_changed(const Cluster&, int) {}
#endif
};

Followed<Mine> followed;
