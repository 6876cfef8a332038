// expect: a GPU picker returns a GpuMask
// A bool is no mask: `true` would always be GPU 0, also behind AnyGpuPicker.
#include <gpusched/allocation/any.hpp>

using namespace gpusched;

struct Mine {
#ifdef GPUSCHED_CONTROL
    GpuMask operator()(const Cluster&, TaskId, NodeId) const { return 1; }
#else
    bool operator()(const Cluster&, TaskId, NodeId) const { return true; }
#endif
};

const allocation::AnyGpuPicker picker = Mine{};
