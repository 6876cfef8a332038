// expect: hook .for_task. that would never be used: expected .auto for_task.const Cluster&, TaskId. const
// A hook that nobody could call.
#include <gpusched/allocation/place.hpp>

using namespace gpusched;

struct Mine {
    int operator()(const Cluster&, TaskId, NodeId) const { return 0; }
#ifdef GPUSCHED_CONTROL
    Mine for_task(const Cluster&, TaskId) const { return *this; }
#else
    Mine for_task(TaskId) const { return *this; }
#endif
};

void use(const Cluster& cluster, TaskId task, Rng& rng) {
    (void)allocation::place(cluster, task, Mine{}, allocation::TightestGpu{}, rng);
}
