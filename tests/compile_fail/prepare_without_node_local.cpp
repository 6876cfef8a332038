// expect: only what a node-local ranker prepares is kept
// Prepared data are kept only if the ranker promises that its scores are node-local.
#include <gpusched/allocation/place.hpp>

using namespace gpusched;

struct Mine {
#ifdef GPUSCHED_CONTROL
    static constexpr bool node_local = true;
#endif
    int prepare(const Cluster&, NodeId) const { return 0; }
    int operator()(const Cluster&, TaskId, NodeId) const { return 0; }
    int operator()(const Cluster&, TaskId, NodeId, int) const { return 0; }
};

void use(const Cluster& cluster, TaskId task, Rng& rng) {
    (void)allocation::place(cluster, task, Mine{}, allocation::TightestGpu{}, rng);
}
