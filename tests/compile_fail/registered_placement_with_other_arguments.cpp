// expect: a placement policy is called as .policy.const Cluster&, TaskId, Rng&
// A placement policy with other arguments than it is called with, by name.
#include <gpusched/allocation/named.hpp>

using namespace gpusched;

struct Mine {
#ifdef GPUSCHED_CONTROL
    std::optional<allocation::Destination> operator()(const Cluster&, TaskId, Rng&) { return {}; }
#else
    std::optional<allocation::Destination> operator()(const Cluster&, TaskId) { return {}; }
#endif
};

void use() {
    auto known = allocation::placements();
    known.add<Mine>("mine");
}
