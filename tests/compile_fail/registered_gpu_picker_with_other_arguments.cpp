// expect: a GPU picker is called as .picker.const Cluster&, TaskId, NodeId
// A GPU picker with other arguments than it is called with, by name.
#include <gpusched/allocation/named.hpp>

using namespace gpusched;

struct Mine {
#ifdef GPUSCHED_CONTROL
    GpuMask operator()(const Cluster&, TaskId, NodeId) const { return 1; }
#else
    GpuMask operator()(const Cluster&, NodeId) const { return 1; }
#endif
};

void use() {
    auto known = allocation::gpu_pickers();
    known.add<Mine>("mine");
}
