// SPDX-License-Identifier: Apache-2.0
// What consolidation returns: the plan, what it gains and costs, and how the search went.
#pragma once

#include <gpusched/consolidation/plan_statistics.hpp>
#include <gpusched/consolidation/refusals.hpp>
#include <gpusched/core/budget.hpp>
#include <gpusched/model/plan.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace gpusched::consolidation {

/// What one round found.
struct RoundStatistics {
    std::int64_t vacated_nodes = 0;
    std::int64_t vacated_gpus = 0;
    std::int64_t moves = 0;  ///< moves of its chains, before chains of several rounds are joined
    bool operator==(const RoundStatistics&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<RoundStatistics>, F&& field) {
    field("vacated_nodes", &RoundStatistics::vacated_nodes);
    field("vacated_gpus", &RoundStatistics::vacated_gpus);
    field("moves", &RoundStatistics::moves);
}

/// What a search did, in all its parts, and what kept it from doing more. Does not depend on the machine.
struct SearchCounters : Refusals {
    std::int64_t nodes_tried = 0;           ///< attempts to vacate a node
    std::int64_t eject_calls = 0;           ///< requests for a place, at all depths
    std::int64_t destinations_scanned = 0;  ///< destinations looked at
    std::int64_t requests_dominated = 0;    ///< requests answered by an earlier, easier one that failed
    std::int64_t exchanges_tried = 0;       ///< attempts to vacate other nodes instead of some
    std::int64_t exchanges_made = 0;        ///< those that were no loss

    SearchCounters& operator+=(const SearchCounters& other) noexcept;
    bool operator==(const SearchCounters&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<SearchCounters>, F&& field) {
    field("nodes_tried", &SearchCounters::nodes_tried);
    field("eject_calls", &SearchCounters::eject_calls);
    field("destinations_scanned", &SearchCounters::destinations_scanned);
    field("requests_dominated", &SearchCounters::requests_dominated);
    field("exchanges_tried", &SearchCounters::exchanges_tried);
    field("exchanges_made", &SearchCounters::exchanges_made);
    visit_fields(std::type_identity<Refusals>{}, field);
}
inline SearchCounters& SearchCounters::operator+=(const SearchCounters& other) noexcept {
    visit_fields(std::type_identity<SearchCounters>{},
                 [&](const char*, auto member) { this->*member += other.*member; });
    return *this;
}

/// Numbers about a plan and about the search for it.
struct Statistics : PlanStatistics, SearchCounters {
    std::int64_t price = 0;           ///< thousandths of a unit of weight for each unit of `relocation_cost`
    std::int64_t vacated_weight = 0;  ///< what the vacated nodes are worth: by default their GPUs
    std::int64_t open_price = 0;      ///< thousandths of `opened_weight` that opening costs
    std::int64_t opened_weight = 0;   ///< what the opened nodes are worth
    /// 1000 x `vacated_weight` - `open_price` x `opened_weight` - `price` x `relocation_cost`
    std::int64_t value_milli = 0;
    std::int64_t hops = 0;            ///< moves to a temporary place
    std::int64_t dropped_chains = 0;  ///< nodes that the search vacated, but whose moves could not be ordered
    std::int64_t goal_before = 0;     ///< empty nodes, or slots, that count for the goal before the plan
    std::int64_t goal_after = 0;      ///< the same after it
    /// No plan leaves more. Of goals of empty nodes, unless `bound_method` is `none` or nodes may be opened.
    std::optional<std::int64_t> goal_at_most{};
    /// No plan that comes as close to the goal has a lower `relocation_cost`. Where that is proved, as `goal_at_most`.
    std::optional<std::int64_t> goal_cost_at_least{};
    std::vector<RoundStatistics> rounds;
    bool operator==(const Statistics&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<Statistics>, F&& field) {
    visit_fields(std::type_identity<PlanStatistics>{}, field);
    field("price", &Statistics::price);
    field("vacated_weight", &Statistics::vacated_weight);
    field("open_price", &Statistics::open_price);
    field("opened_weight", &Statistics::opened_weight);
    field("value_milli", &Statistics::value_milli);
    field("hops", &Statistics::hops);
    field("dropped_chains", &Statistics::dropped_chains);
    field("goal_before", &Statistics::goal_before);
    field("goal_after", &Statistics::goal_after);
    field("goal_at_most", &Statistics::goal_at_most);
    field("goal_cost_at_least", &Statistics::goal_cost_at_least);
    visit_fields(std::type_identity<SearchCounters>{}, field);
}

/// A plan (with its bound inside), what it is worth, and why the search ended.
struct Result {
    Plan plan;
    Statistics stats;
    StopReason stop_reason = StopReason::completed;
};

/// The statistics as `gpusched.plan` files have them (`PlanSpec::stats`): every number under its name here, the number of
/// `rounds`, and what each of them found as `round_1_vacated_nodes` and so on.
[[nodiscard]] std::map<std::string, double> to_stats(const Statistics& statistics);

/// The rounds that `stats` of a plan tells of; none for plans of other origin.
[[nodiscard]] std::vector<RoundStatistics> rounds_of(const PlanSpec& plan);

}  // namespace gpusched::consolidation
