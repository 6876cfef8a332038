// expect: node_order is called as .policy.const Cluster&, NodeId.., returns a whole number
// The order in which nodes are tried is a key per node.
#include <gpusched/consolidation/policies.hpp>

using namespace gpusched;
namespace con = gpusched::consolidation;

struct Mine {
#ifdef GPUSCHED_CONTROL
    std::int64_t operator()(const Cluster&, NodeId) const { return 0; }
#else
    const char* operator()(const Cluster&, NodeId) const { return "first"; }
#endif
};

con::Policies<con::BySwitch, Mine, con::TightestFit, con::EasierVictims, con::PriceLimit, con::GpuWeight>
    policies;
