// expect: Policies::destination_ranking has the const members .bool visit.const Cluster&, const FreeIndex&
// A ranking of destinations with other arguments than it is called with, by name.
#include <gpusched/consolidation/named.hpp>

using namespace gpusched;

struct Mine {
#ifdef GPUSCHED_CONTROL
    template <class Offer>
    bool visit(const Cluster&, const consolidation::FreeIndex&, TaskId, Offer&&) const {
        return false;
    }
    template <class Offer>
    bool visit_full(const Cluster&, const consolidation::FreeIndex&, TaskId, Offer&&) const {
        return false;
    }
#else
    template <class Offer>
    bool visit(const Cluster&, TaskId, Offer&&) const {
        return false;
    }
    template <class Offer>
    bool visit_full(const Cluster&, TaskId, Offer&&) const {
        return false;
    }
#endif
};

void use() {
    auto known = consolidation::destination_rankings();
    known.add<Mine>("mine");
}
