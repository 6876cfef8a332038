// Presets: the paper's set of policies and this library's own, by name.
#pragma once

#include <gpusched/consolidation/policies.hpp>

namespace gpusched::consolidation {

/// The paper's: random groups, fewest pods first, destinations in group order, any victims.
template <NodeWeight W = GpuWeight>
using Ipc = Policies<RandomGroups, FewestPods, GroupOrder, FirstVictims, AcceptAll, W>;

/// Ours: pools per GPU model, least GPU demand first, tightest fit, easier victims only.
template <NodeWeight W = GpuWeight>
using Pooled = Policies<ByGpuModel, LeastDemand, TightestFit, EasierVictims, AcceptAll, W>;

}  // namespace gpusched::consolidation
