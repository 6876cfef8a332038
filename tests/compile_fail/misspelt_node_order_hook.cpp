// expect: member .per_round., which nobody calls: the hook is named .for_round.
// A node order that would never be made ready for a round.
#include <gpusched/consolidation/policies.hpp>

using namespace gpusched;
namespace con = gpusched::consolidation;

struct Mine {
#ifdef GPUSCHED_CONTROL
    Mine for_round(const Cluster&) const { return *this; }
#else
    Mine per_round(const Cluster&) const { return *this; }
#endif
    std::int64_t operator()(const Cluster&, NodeId) const { return 0; }
};

con::Policies<con::BySwitch, Mine, con::TightestFit, con::CheapestVictims, con::PriceLimit, con::GpuWeight>
    policies;
