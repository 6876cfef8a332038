// expect: add<P>.name. makes a P[{][}]; a policy with arguments is added with a function that makes it
// A node order that is made of a number, by name.
#include <gpusched/consolidation/named.hpp>

using namespace gpusched;

struct Mine {
    explicit Mine(int) {}
    int operator()(const Cluster&, NodeId) const { return 0; }
};

void use() {
    auto known = consolidation::node_orders();
#ifdef GPUSCHED_CONTROL
    known.add("mine", [] { return Mine(1); });
#else
    known.add<Mine>("mine");
#endif
}
