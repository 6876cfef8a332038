// expect: a ranker is called as .ranker.const Cluster&, TaskId, NodeId
// A ranker with other arguments than it is called with, as an object under a name.
#include <gpusched/allocation/named.hpp>

using namespace gpusched;

struct Mine {
    int factor = 1;
#ifdef GPUSCHED_CONTROL
    int operator()(const Cluster&, TaskId, NodeId) const { return factor; }
#else
    int operator()(const Cluster&, NodeId) const { return factor; }
#endif
};

void use() {
    auto known = allocation::rankers();
    known.add("mine", Mine{3});
}
