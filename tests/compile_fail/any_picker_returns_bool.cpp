// expect: returns a GpuMask or what converts to it
// A bool is no mask: `true` would always be GPU 0, also behind AnyPurePicker.
#include <gpusched/consolidation/any.hpp>

using namespace gpusched;

struct Mine {
#ifdef GPUSCHED_CONTROL
    GpuMask operator()(const Cluster&, TaskId, NodeId) const { return 1; }
#else
    bool operator()(const Cluster&, TaskId, NodeId) const { return true; }
#endif
};

const consolidation::AnyPurePicker picker = Mine{};
