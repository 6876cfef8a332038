// expect: scores are whole numbers, not floating point
// Scores in floating point: which nodes tie would depend on the machine.
#include <gpusched/allocation/place.hpp>

using namespace gpusched;

struct Mine {
#ifdef GPUSCHED_CONTROL
    int operator()(const Cluster&, TaskId, NodeId) const { return 500; }
#else
    double operator()(const Cluster&, TaskId, NodeId) const { return 0.5; }
#endif
};

void use(const Cluster& cluster, TaskId task, Rng& rng) {
    (void)allocation::place(cluster, task, Mine{}, allocation::TightestGpu{}, rng);
}
