// expect: member .is_local., which nobody calls: the hook is named .node_local.
// A promise that nobody hears, also behind AnyRanker: every placement would ask about every node.
#include <gpusched/allocation/any.hpp>

using namespace gpusched;

struct Mine {
#ifdef GPUSCHED_CONTROL
    static constexpr bool node_local = true;
#else
    static constexpr bool is_local = true;
#endif
    int operator()(const Cluster&, TaskId, NodeId) const { return 0; }
};

const allocation::AnyRanker ranker = Mine{};
