// expect: a victim order is called as .order.const Cluster&, TaskId victim, std::int64_t now
// A victim order with other arguments than it is called with, by name.
#include <gpusched/preemption/named.hpp>

using namespace gpusched;

struct Mine {
#ifdef GPUSCHED_CONTROL
    int operator()(const Cluster&, TaskId, std::int64_t) const { return 0; }
#else
    int operator()(const Cluster&, TaskId) const { return 0; }
#endif
};

void use() {
    auto known = preemption::victim_policies();
    known.add<Mine>("mine");
}
