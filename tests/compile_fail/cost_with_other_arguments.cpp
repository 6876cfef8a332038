// expect: a cost function is called as .cost.const Cluster&, TaskId, std::int64_t now
// A cost function that forgets the time.
#include <gpusched/preemption/options.hpp>

using namespace gpusched;

preemption::Options options() {
#ifdef GPUSCHED_CONTROL
    return {.cost = [](const Cluster&, TaskId, std::int64_t) { return 500; }};
#else
    return {.cost = [](const Cluster&, TaskId) { return 500; }};
#endif
}
