// expect: a GPU picker returns a GpuMask
// Which GPUs is a mask, not a list of numbers; an int converts.
#include <gpusched/allocation/place.hpp>
#include <gpusched/allocation/rankers.hpp>

#include <vector>

using namespace gpusched;

struct Mine {
#ifdef GPUSCHED_CONTROL
    int operator()(const Cluster&, TaskId, NodeId) const { return 0b11; }
#else
    std::vector<int> operator()(const Cluster&, TaskId, NodeId) const { return {0, 1}; }
#endif
};

void use(const Cluster& cluster, TaskId task, Rng& rng) {
    (void)allocation::place(cluster, task, allocation::Packing{}, Mine{}, rng);
}
