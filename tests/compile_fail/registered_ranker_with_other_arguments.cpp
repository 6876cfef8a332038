// expect: a ranker is called as .ranker.const Cluster&, TaskId, NodeId
// A ranker with other arguments than it is called with, by name.
#include <gpusched/allocation/named.hpp>

using namespace gpusched;

struct Mine {
#ifdef GPUSCHED_CONTROL
    int operator()(const Cluster&, TaskId, NodeId) const { return 0; }
#else
    int operator()(const Cluster&, NodeId) const { return 0; }
#endif
};

void use() {
    auto known = allocation::rankers();
    known.add<Mine>("mine");
}
