// Goal: so many empty nodes, or places for tasks of a shape, for the least that moves may cost.
#pragma once

#include <gpusched/config.hpp>
#include <gpusched/consolidation/options.hpp>
#include <gpusched/consolidation/result.hpp>
#include <gpusched/core/context.hpp>
#include <gpusched/core/gpu_mask.hpp>

#include <cstdint>
#include <string>
#include <type_traits>

namespace GPUSCHED_NAMESPACE::consolidation {

/// Options of `reach_goal`: what there is to be afterwards, and those of `consolidate`, of which `price` is the lowest price that
/// it goes down to, and `preset` is `fast` or `best`. `objective` must be its default, and `polish_time` absent.
struct GoalOptions : Options {
    /// How many empty nodes, or places, there are to be afterwards, >= 1. Those that are there already count.
    std::int64_t count = 1;
    /// On nodes of this GPU model only; empty = on any.
    std::string gpu_model{};
    /// Whole GPUs of each place, 0 .. 64. With 0 here, no cores and no memory, empty nodes are counted, not places.
    int gpus = 0;
    /// Thousandths of a core of each place, >= 0.
    std::int64_t cpu_milli = 0;
    /// MiB of memory of each place, >= 0.
    std::int64_t memory_mib = 0;
};
template <class F>
constexpr void visit_fields(std::type_identity<GoalOptions>, F&& field) {
    visit_fields(std::type_identity<Options>{}, field);
    field("count", &GoalOptions::count, at_least(1));
    field("gpu_model", &GoalOptions::gpu_model);
    field("gpus", &GoalOptions::gpus, within(0, max_gpus_per_node));
    field("cpu_milli", &GoalOptions::cpu_milli, at_least(0));
    field("memory_mib", &GoalOptions::memory_mib, at_least(0));
}

/// The plan that comes closest to a goal, and how close that is.
struct GoalResult {
    /// Its weight is what its vacated nodes add to what there is, as far as nothing moves onto other places.
    Result result;
    std::int64_t available_before = 0;  ///< empty nodes, or places, before the plan
    std::int64_t available_after = 0;   ///< the same after it
    bool goal_reached = false;          ///< at least `count` are there afterwards
};

/// Makes so many empty nodes, or places for tasks of one shape, by moves that cost little.
///
/// A node counts as empty if it holds no task but daemons; a place is what a task of the shape takes of one node. Cordoned nodes do
/// not count. One search goes down a ladder of prices, as `frontier` does, with what each node would add as its weight, and ends at
/// the first plan that reaches the goal. So nodes that cost the fewest moves for what they add come first. That is not the proven
/// least. Places that arriving tasks take on other nodes are counted from the plan itself; where they are missing, the search goes on.
/// Places are also made on nodes that stay in use: the fewest tasks leave a node for others where they take fewer places, on top of that
/// plan where it does not reach the goal, and without it. What reaches the goal for less is returned.
///
/// @return the plan; empty where the goal is reached without one; else, where the goal is out of reach, the one that makes most
/// @throws InvalidInput as `consolidate`, for a GPU model that the cluster does not have, and for `ipc`, an `objective` or a
///     `polish_time`; BackendError for the method `lp` without a solver
/// @note deterministic, whatever the number of threads; as `consolidate`
[[nodiscard]] GoalResult reach_goal(const Cluster& cluster, const GoalOptions& options = {},
                                    const Context& context = {});

}  // namespace GPUSCHED_NAMESPACE::consolidation

#ifdef GPUSCHED_HEADER_ONLY
#include <gpusched/consolidation/impl/goal.ipp>
#endif
