// expect: hook .for_round. that would never be used: expected .NodeOrder for_round.const
// A hook that is a template and not const: nobody could call it.
#include <gpusched/consolidation/policies.hpp>

using namespace gpusched;
namespace con = gpusched::consolidation;

struct Mine {
    template <class C>
#ifdef GPUSCHED_CONTROL
    Mine for_round(const C&) const {
#else
    Mine for_round(const C&) {
#endif
        return *this;
} std::int64_t operator()(const Cluster&, NodeId) const {
    return 0;
}
}
;

con::Policies<con::BySwitch, Mine, con::TightestFit, con::CheapestVictims, con::PriceLimit, con::GpuWeight>
    policies;
