// expect: a victim order returns whole numbers, not floating point
// A key in floating point would be cut off: many victims would be equal.
#include <gpusched/preemption/options.hpp>

using namespace gpusched;

struct Mine {
#ifdef GPUSCHED_CONTROL
    std::int64_t operator()(const Cluster&, TaskId, std::int64_t) const { return 500; }
#else
    double operator()(const Cluster&, TaskId, std::int64_t) const { return 0.5; }
#endif
};

preemption::Options options() { return {.policy = Mine{}}; }
