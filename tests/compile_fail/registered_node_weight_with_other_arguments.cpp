// expect: Policies::node_weight is called as .policy.const Cluster&, NodeId
// A weight of nodes with other arguments than it is called with, by name.
#include <gpusched/consolidation/named.hpp>

using namespace gpusched;

struct Mine {
#ifdef GPUSCHED_CONTROL
    int operator()(const Cluster&, NodeId) const { return 1; }
#else
    int operator()(NodeId) const { return 1; }
#endif
};

void use() {
    auto known = consolidation::node_weights();
    known.add<Mine>("mine");
}
