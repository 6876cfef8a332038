// expect: add<P>.name. makes a P[{][}]; a policy with arguments is added with a function that makes it
// A ranker that is made of a number, by name.
#include <gpusched/allocation/named.hpp>

using namespace gpusched;

struct Mine {
    explicit Mine(int) {}
    int operator()(const Cluster&, TaskId, NodeId) const { return 0; }
};

void use() {
    auto known = allocation::rankers();
#ifdef GPUSCHED_CONTROL
    known.add("mine", [](const Inventory&) { return Mine(1); });
#else
    known.add<Mine>("mine");
#endif
}
