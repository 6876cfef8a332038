// expect: scores are whole numbers, not floating point, nor tuples with a part in it
// A pair is compared part by part: ties of the first part would depend on the machine.
#include <gpusched/allocation/place.hpp>

#include <utility>

using namespace gpusched;

struct Mine {
#ifdef GPUSCHED_CONTROL
    std::pair<long, int> operator()(const Cluster&, TaskId, NodeId) const { return {500, 1}; }
#else
    std::pair<double, int> operator()(const Cluster&, TaskId, NodeId) const { return {0.5, 1}; }
#endif
};

void use(const Cluster& cluster, TaskId task, Rng& rng) {
    (void)allocation::place(cluster, task, Mine{}, allocation::TightestGpu{}, rng);
}
