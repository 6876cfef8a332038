// expect: a ranker returns a score with a total order
// A ranker gives a score that can be compared.
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
