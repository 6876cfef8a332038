// expect: a node filter is called as .filter.const Cluster&, TaskId, NodeId
// A filter with other arguments than it is called with, by name.
#include <gpusched/allocation/named.hpp>

using namespace gpusched;

struct Mine {
#ifdef GPUSCHED_CONTROL
    bool operator()(const Cluster&, TaskId, NodeId) const { return true; }
#else
    bool operator()(const Cluster&, NodeId) const { return true; }
#endif
};

void use() {
    auto known = allocation::filters();
    known.add<Mine>("mine");
}
