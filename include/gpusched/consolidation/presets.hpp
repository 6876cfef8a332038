// Presets: the paper's set of policies and this library's own, by name.
#pragma once

#include <gpusched/consolidation/policies.hpp>

namespace gpusched::consolidation::presets {

/// The paper's: random groups, fewest pods first, destinations in group order, any victims.
template <NodeWeight W = GpuWeight>
[[nodiscard]] auto ipc(W weight = {}) {
    return Policies<RandomGroups, FewestPods, GroupOrder, FirstVictims, AcceptAll, W>{
        .weight = weight, .shortest_chains_first = false};
}

/// Ours: pools per GPU model, least GPU demand first, tightest fit, the fewest victims that are easier to place.
/// `consolidate` runs it with a depth of at most 2.
template <NodeWeight W = GpuWeight>
[[nodiscard]] auto fast(W weight = {}) {
    return Policies<ByGpuModel, LeastDemand, TightestFit, CheapestVictims, AcceptAll, W>{.weight = weight};
}

/// Ours: the same at full depth, with at most four tasks moved for one pod, and exact where the group is tiny.
template <NodeWeight W = GpuWeight>
[[nodiscard]] auto best(W weight = {}) {
    auto policies = fast(weight);
    policies.longest_chain = 4;
    policies.exact_when_tiny = true;
    return policies;
}

}  // namespace gpusched::consolidation::presets
