// expect: member .is_local. is never called; the hook is named .node_local.
// A promise that nobody hears: every placement would ask about every node.
#include <gpusched/allocation/gpu_pickers.hpp>
#include <gpusched/allocation/ranked_placement.hpp>

using namespace gpusched;

struct Mine {
#ifdef GPUSCHED_CONTROL
    static constexpr bool node_local = true;
#else
    static constexpr bool is_local = true;
#endif
    int operator()(const Cluster&, TaskId, NodeId) const { return 0; }
};

allocation::RankedPlacement<Mine, allocation::TightestGpu> placement;
