// SPDX-License-Identifier: Apache-2.0
// Presets: the paper's set of policies and this library's own, by name.
#pragma once

#include <gpusched/consolidation/policies.hpp>

#include <concepts>
#include <type_traits>
#include <utility>

namespace gpusched::consolidation::presets {

/// The paper's: random groups, fewest pods first, destinations in group order, any victims, chains of any depth at once.
/// What the paper does not have is the memory of failed requests: without it the search takes minutes on nodes of many
/// tasks; `remember_failures = false` gives it back.
template <NodeWeight W = GpuWeight>
[[nodiscard]] auto ipc(W weight = {}) {
    return detail::papers_choices(PriceLimit{}, std::move(weight), allocation::TightestGpu{});
}

/// Ours: pools per GPU model, least demand first (for the node's size, unless nodes count alike), tightest fit, the fewest
/// victims that are easier to place, moves nested at most twice, one round.
template <NodeWeight W = GpuWeight>
[[nodiscard]] auto fast(W weight = {}) {
    using Order = std::conditional_t<std::same_as<W, UnitWeight>, LeastDemand, LeastDemandForSize>;
    return Policies<ByGpuModel, Order, TightestFit, CheapestVictims, PriceLimit, W>{
        .node_weight = weight, .switches = {.deepest = 2, .most_rounds = 1}};
}

/// Ours: the same with deeper rounds after the first, and exact where the group is tiny; then exchanges of vacated nodes for others
/// as long as its steps last, from the best of several starts, among them the searches of `fast` and `ipc`. So no plan of theirs
/// has a higher value, nor the same value for less.
template <NodeWeight W = GpuWeight>
[[nodiscard]] auto best(W weight = {}) {
    auto policies = fast(weight);
    policies.switches = {
        .shallow_round_first = true, .several_starts = true, .exchange_steps = 2000, .exact_when_tiny = true};
    return policies;
}

/// Calls `use` with the policies of the preset for the objective, whose types differ.
template <class Use>
decltype(auto) visit(Preset preset, Objective objective, Use&& use) {
    const auto with_weight = [&](auto weight) -> decltype(auto) {
        switch (preset) {
        case Preset::ipc:
            return use(ipc(weight));
        case Preset::fast:
            return use(fast(weight));
        case Preset::best:
            break;
        }
        return use(best(weight));
    };
    return objective == Objective::gpus ? with_weight(GpuWeight{}) : with_weight(UnitWeight{});
}

}  // namespace gpusched::consolidation::presets

namespace gpusched::consolidation::detail {
// Compiled in the library; `fast` has the types of `best`.
extern template GPUSCHED_EXPORT Result consolidate(const Cluster&, const decltype(presets::best())&,
                                                   const Options&, const Context&);
extern template GPUSCHED_EXPORT Result consolidate(const Cluster&,
                                                   const decltype(presets::best(UnitWeight{}))&,
                                                   const Options&, const Context&);
extern template GPUSCHED_EXPORT Result consolidate(const Cluster&, const decltype(presets::ipc())&,
                                                   const Options&, const Context&);
extern template GPUSCHED_EXPORT Result consolidate(const Cluster&,
                                                   const decltype(presets::ipc(UnitWeight{}))&,
                                                   const Options&, const Context&);
}  // namespace gpusched::consolidation::detail
