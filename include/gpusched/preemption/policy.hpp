// SPDX-License-Identifier: Apache-2.0
// The library's victim policies: one row of a table for each, with its name and all that tells it from the others.
#pragma once

#include <gpusched/core/enum_names.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace gpusched::preemption {

/// How a node's victims, and the node, are chosen.
enum class Policy : std::uint8_t {
    spot,        ///< ASI: cheapest spot tasks first until the task fits; the node that loses the least work
    spot_exact,  ///< ours: the victims that lose the least work, per node and over all nodes
    imp,         ///< FlexTopo's Incremental Minimal Preemption: fewest victims per node, then Equation 1
    exhaustive,  ///< the optimum of FlexTopo's Equation 1 over all sets of victims
    reprieve,    ///< Kubernetes: all potential victims leave, the most important ones come back first
    first_fit,   ///< the first node on which leaving by ascending priority makes room
};

namespace detail {

/// Which candidate is best, first to last, after the fewest tasks beyond budgets; names of victims break the ties that remain.
enum class Objective : std::uint8_t {
    fewest,  ///< fewest victims, score, lower maximum priority, cost: the best of IMP's answer
    score,   ///< score, fewest victims, lower maximum priority, cost: the optimum of Equation 1
    cost,    ///< cost, fewest victims, lower maximum priority: the least work lost
};

/// Which node wins, of those on which evictions help.
enum class NodeChoice : std::uint8_t {
    best,             ///< the best candidate by the objective
    least_important,  ///< the least important victims, as Kubernetes compares them
    first,            ///< the first one
};

/// What tells policies apart, besides the way in which a node's victims are found (`best_of_node`).
struct PolicyTraits {
    Policy policy{};
    const char* name = nullptr;
    Objective objective = Objective::cost;
    NodeChoice nodes = NodeChoice::best;
    bool spot = false;      ///< victims are spot tasks of any priority; else tasks of lower priority
    bool searches = false;  ///< finds the best set by the objective, with either `Engine`
    bool indexed = false;   ///< `PreemptionIndex` keeps its answers
};

/// In the order of the enumerators.
inline constexpr auto policies = std::to_array<PolicyTraits>({
    {.policy = Policy::spot, .name = "spot", .objective = Objective::cost, .spot = true},
    {.policy = Policy::spot_exact,
     .name = "spot_exact",
     .objective = Objective::cost,
     .spot = true,
     .searches = true},
    {.policy = Policy::imp, .name = "imp", .objective = Objective::fewest, .searches = true, .indexed = true},
    {.policy = Policy::exhaustive,
     .name = "exhaustive",
     .objective = Objective::score,
     .searches = true,
     .indexed = true},
    {.policy = Policy::reprieve,
     .name = "reprieve",
     .objective = Objective::fewest,
     .nodes = NodeChoice::least_important},
    {.policy = Policy::first_fit,
     .name = "first_fit",
     .objective = Objective::fewest,
     .nodes = NodeChoice::first},
});

static_assert([] {
    for (std::size_t i = 0; i < policies.size(); ++i)
        if (static_cast<std::size_t>(policies[i].policy) != i) return false;
    return true;
}());

/// The names of the policies of which a trait is true: "imp or exhaustive".
/// @param joint before the last one
inline std::string policies_with(bool PolicyTraits::*trait, const char* joint) {
    std::string text;
    std::size_t left = 0;
    for (const auto& row : policies) left += row.*trait;
    for (const auto& row : policies) {
        if (!(row.*trait)) continue;
        text += row.name;
        --left;
        if (left > 0) text += left > 1 ? ", " : " " + std::string(joint) + " ";
    }
    return text;
}

}  // namespace detail

constexpr auto enum_names(Policy) {
    std::array<EnumName<Policy>, detail::policies.size()> names{};
    for (std::size_t i = 0; i < names.size(); ++i)
        names[i] = {detail::policies[i].policy, detail::policies[i].name};
    return names;
}

}  // namespace gpusched::preemption
