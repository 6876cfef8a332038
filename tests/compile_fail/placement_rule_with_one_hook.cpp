// expect: a placement rule has both hooks, .enter. and .leave., or neither
// A rule that hears of arrivals but not of departures would count wrong.
#include <gpusched/consolidation/options.hpp>

using namespace gpusched;

struct CountsArrivals {
    std::int64_t arrived = 0;
    bool allows(const Cluster&, TaskId, NodeId) const { return arrived < 9; }
    void enter(const Cluster&, TaskId, NodeId) { ++arrived; }
#ifdef GPUSCHED_CONTROL
    void leave(const Cluster&, TaskId, NodeId) { --arrived; }
#endif
};

const consolidation::Options options{.rule = CountsArrivals{}};
