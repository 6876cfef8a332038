// expect: a cost function returns whole numbers, not floating point
// A cost in floating point would be cut off: below 1 every victim would cost nothing.
#include <gpusched/preemption/options.hpp>

using namespace gpusched;

preemption::Options options() {
#ifdef GPUSCHED_CONTROL
    return {.cost = [](const Cluster&, TaskId, std::int64_t) { return 500; }};
#else
    return {.cost = [](const Cluster&, TaskId, std::int64_t) { return 0.5; }};
#endif
}
