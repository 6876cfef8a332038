// expect: bool visit_full
// A ranking of destinations also offers nodes that are full now.
#include <gpusched/consolidation/policies.hpp>

using namespace gpusched;
namespace con = gpusched::consolidation;

struct Mine {
    template <class Offer>
    bool visit(const Cluster&, const con::FreeIndex&, TaskId, Offer&&) const {
        return false;
    }
#ifdef GPUSCHED_CONTROL
    template <class Offer>
    bool visit_full(const Cluster&, const con::FreeIndex&, TaskId, Offer&&) const {
        return false;
    }
#endif
};

con::Policies<con::BySwitch, con::FewestPods, Mine, con::EasierVictims, con::PriceLimit, con::GpuWeight>
    policies;
