// expect: Policies::node_order is called as .policy.const Cluster&, NodeId
// A node order, which a function makes, with other arguments than it is called with, by name.
#include <gpusched/consolidation/named.hpp>

using namespace gpusched;

struct Mine {
#ifdef GPUSCHED_CONTROL
    int operator()(const Cluster&, NodeId) const { return 0; }
#else
    int operator()(const Cluster&, TaskId, NodeId) const { return 0; }
#endif
};

void use() {
    auto known = consolidation::node_orders();
    known.add("mine", [] { return Mine{}; });
}
