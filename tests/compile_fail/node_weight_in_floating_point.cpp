// expect: weight returns whole numbers, not floating point
// What a node is worth is a whole number, too.
#include <gpusched/consolidation/policies.hpp>

using namespace gpusched;
namespace con = gpusched::consolidation;

struct Mine {
#ifdef GPUSCHED_CONTROL
    std::int64_t operator()(const Cluster&, NodeId) const { return 500; }
#else
    double operator()(const Cluster&, NodeId) const { return 0.5; }
#endif
};

con::Policies<con::BySwitch, con::FewestPods, con::TightestFit, con::EasierVictims, con::PriceLimit, Mine>
    policies;
