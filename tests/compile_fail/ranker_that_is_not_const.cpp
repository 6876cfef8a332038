// expect: its operator.. is const
// A policy holds no hidden state: it is called through a const reference.
#include <gpusched/allocation/place.hpp>

using namespace gpusched;

struct Mine {
    int calls = 0;
#ifdef GPUSCHED_CONTROL
    int operator()(const Cluster&, TaskId, NodeId) const { return calls; }
#else
    int operator()(const Cluster&, TaskId, NodeId) { return ++calls; }
#endif
};

void use(const Cluster& cluster, TaskId task, Rng& rng) {
    (void)allocation::place(cluster, task, Mine{}, allocation::TightestGpu{}, rng);
}
