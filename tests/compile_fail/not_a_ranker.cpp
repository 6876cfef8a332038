// expect: NodeRanker
// A ranker gives a score that can be compared; what it forgets is named by the concept.
#include <gpusched/allocation/place.hpp>

using namespace gpusched;

struct Mine {
#ifdef GPUSCHED_CONTROL
    int operator()(const Cluster&, TaskId, NodeId) const { return 0; }
#else
    void operator()(const Cluster&, TaskId, NodeId) const {}
#endif
};

void use(const Cluster& cluster, TaskId task, Rng& rng) {
    (void)allocation::place(cluster, task, Mine{}, allocation::TightestGpu{}, rng);
}
