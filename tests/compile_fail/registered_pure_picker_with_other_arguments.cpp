// expect: Policies::gpu_picker is called as .picker.const Cluster&, TaskId, NodeId
// A picker of consolidation with other arguments than it is called with, by name.
#include <gpusched/consolidation/named.hpp>

using namespace gpusched;

struct Mine {
#ifdef GPUSCHED_CONTROL
    GpuMask operator()(const Cluster&, TaskId, NodeId) const { return 1; }
#else
    GpuMask operator()(const Cluster&, TaskId, NodeId, Rng&) const { return 1; }
#endif
};

void use() {
    auto known = consolidation::gpu_pickers();
    known.add<Mine>("mine");
}
