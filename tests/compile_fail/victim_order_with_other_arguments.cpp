// expect: a victim order is called as .order.const Cluster&, TaskId victim, std::int64_t now
// A victim order with other arguments than it is called with.
#include <gpusched/preemption/options.hpp>

using namespace gpusched;

struct Mine {
#ifdef GPUSCHED_CONTROL
    std::int64_t operator()(const Cluster&, TaskId, std::int64_t) const { return 0; }
#else
    std::int64_t operator()(const Cluster&, TaskId) const { return 0; }
#endif
};

preemption::Options options() { return {.policy = Mine{}}; }
