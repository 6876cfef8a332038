// Presets: the paper's set of policies and this library's own, by name.
#pragma once

#include <gpusched/consolidation/policies.hpp>

namespace gpusched::consolidation {

/// The paper's: random groups, fewest pods first, destinations in group order, any victims.
template <NodeWeight W = GpuWeight>
using Ipc = Policies<RandomGroups, FewestPods, GroupOrder, FirstVictims, AcceptAll, W>;

/// Ours: pools per GPU model, least GPU demand first, tightest fit, easier victims only.
template <NodeWeight W = GpuWeight>
using Fast = Policies<ByGpuModel, LeastDemand, TightestFit, CheapestVictims, AcceptAll, W>;

/// Ours: the same, comparing all ways to make room.
template <NodeWeight W = GpuWeight>
using Best = Policies<ByGpuModel, LeastDemand, TightestFit, CheapestVictims, AcceptAll, W>;

}  // namespace gpusched::consolidation
