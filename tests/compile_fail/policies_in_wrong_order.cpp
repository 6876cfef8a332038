// expect: Policies::partitioner is called as
// The partitioner comes before the node order.
#include <gpusched/consolidation/policies.hpp>

namespace con = gpusched::consolidation;

#ifdef GPUSCHED_CONTROL
con::Policies<con::BySwitch, con::FewestPods, con::TightestFit, con::EasierVictims, con::PriceLimit,
              con::GpuWeight>
#else
con::Policies<con::FewestPods, con::BySwitch, con::TightestFit, con::EasierVictims, con::PriceLimit,
              con::GpuWeight>
#endif
    policies;
