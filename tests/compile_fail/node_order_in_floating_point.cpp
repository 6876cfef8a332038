// expect: node_order returns whole numbers, not floating point
// A key in floating point would be cut off to a whole number.
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

con::Policies<con::BySwitch, Mine, con::TightestFit, con::EasierVictims, con::PriceLimit, con::GpuWeight>
    policies;
