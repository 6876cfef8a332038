// expect: for_task. returns a ranker whose scores are of the same type
// The result of `for_task` replaces the ranker: scores in floating point would be truncated there.
#include <gpusched/allocation/place.hpp>

using namespace gpusched;

struct Exact {
#ifdef GPUSCHED_CONTROL
    int operator()(const Cluster&, TaskId, NodeId) const { return 500; }
#else
    double operator()(const Cluster&, TaskId, NodeId) const { return 0.5; }
#endif
};
struct Mine {
    int operator()(const Cluster&, TaskId, NodeId) const { return 0; }
    Exact for_task(const Cluster&, TaskId) const { return {}; }
};

void use(const Cluster& cluster, TaskId task, Rng& rng) {
    (void)allocation::place(cluster, task, Mine{}, allocation::TightestGpu{}, rng);
}
