// expect: Policies::partitioner is called as .partitioner.const Cluster&, std::size_t
// A partitioner with other arguments than it is called with, by name.
#include <gpusched/consolidation/named.hpp>

using namespace gpusched;

struct Mine {
#ifdef GPUSCHED_CONTROL
    consolidation::Partition operator()(const Cluster&, std::size_t, Rng&) const { return {}; }
#else
    consolidation::Partition operator()(const Cluster&, Rng&) const { return {}; }
#endif
};

void use() {
    auto known = consolidation::partitioners();
    known.add<Mine>("mine");
}
