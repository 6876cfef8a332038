// SPDX-License-Identifier: Apache-2.0
// What consolidation returns: the plan, its value, and statistics of the plan and of the search.
#pragma once

#include <gpusched/core/budget.hpp>
#include <gpusched/model/cluster.hpp>
#include <gpusched/model/feasibility.hpp>
#include <gpusched/model/plan.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace gpusched::consolidation {

// ---- value ----------------------------------------------------------------------------------------------

/// Values are in thousandths of a unit of weight.
inline constexpr std::int64_t milli = 1000;

/// Returns milli x `weight` - `price` x `cost`, saturated to the range of 64 bits.
/// @param weight of the vacated nodes
/// @param cost sum of `move_cost` over the tasks whose last node or GPUs differ from their first
/// @param price thousandths for each unit of `cost`, >= 0
[[nodiscard]] constexpr std::int64_t value_milli(std::int64_t weight, std::int64_t cost,
                                                 std::int64_t price) noexcept {
    constexpr auto most = std::numeric_limits<std::int64_t>::max() / 4;
    const auto times = [](std::int64_t amount, std::int64_t factor) {
        if (factor == 0) return std::int64_t{0};
        return std::clamp(amount, -(most / factor), most / factor) * factor;
    };
    return times(weight, milli) - times(cost, price);
}

/// Returns the cost of opening nodes, in thousandths: `weight` x `open_price`, saturated.
[[nodiscard]] constexpr std::int64_t opening_milli(std::int64_t weight, std::int64_t open_price) noexcept {
    return -value_milli(0, weight, open_price);
}

/// Returns the cost of moves per unit of weight, in millionths; the maximum if the weight is 0.
[[nodiscard]] constexpr std::int64_t price_of_moves(std::int64_t weight, std::int64_t cost) noexcept {
    constexpr auto most = std::numeric_limits<std::int64_t>::max();
    return weight <= 0 ? most : std::min(cost, most / 1'000'000) * 1'000'000 / weight;
}

/// Returns whether vacating nodes of `weight` is worth moves that cost `cost` and open nodes for `opening`
/// thousandths.
[[nodiscard]] constexpr bool is_worth(std::int64_t weight, std::int64_t cost, std::int64_t price,
                                      std::int64_t opening = 0) noexcept {
    return price == 0 && opening == 0 ? weight >= 0 : value_milli(weight, cost, price) >= opening;
}

// ---- statistics of a plan -------------------------------------------------------------------------------

/// Costs and gains of a plan from any source.
struct PlanStatistics {
    // Cost
    std::int64_t moves = 0;        ///< all moves, hops included
    std::int64_t moved_tasks = 0;  ///< tasks whose last node differs from their first
    std::int64_t move_cost = 0;    ///< sum of `move_cost` over all moves
    /// Sum of `move_cost` over the tasks whose last node or GPUs differ from their first. A price applies to
    /// it.
    std::int64_t relocation_cost = 0;
    std::int64_t disturbed_jobs = 0;      ///< jobs with a moved member; a task without a job counts as one
    std::int64_t waves = 0;               ///< number of waves
    std::int64_t first_wave_moves = 0;    ///< moves of the first wave
    std::int64_t most_moves_at_once = 0;  ///< moves of the largest wave
    // Gain
    std::int64_t vacated_nodes = 0;  ///< nodes with a task other than daemons before and none after
    std::int64_t vacated_gpus = 0;   ///< healthy GPUs of the vacated nodes
    std::int64_t opened_nodes = 0;   ///< nodes with daemons at most before, to which moves lead
    std::int64_t opened_gpus = 0;    ///< healthy GPUs of the opened nodes
    std::int64_t vacated_domains =
        0;  ///< deepest network domains (racks, access switches) that lose all tasks
    /// Nodes with a task and an idle GPU before the plan, as in fragmentation::occupancy.
    std::int64_t not_fully_occupied_before = 0;
    std::int64_t not_fully_occupied_after = 0;  ///< the same after the plan

    [[nodiscard]] double moves_per_vacated_node() const noexcept { return ratio(moves, vacated_nodes, 0); }
    [[nodiscard]] double vacated_gpus_per_move() const noexcept { return ratio(vacated_gpus, moves, 0); }
    [[nodiscard]] double vacated_nodes_per_move() const noexcept { return ratio(vacated_nodes, moves, 0); }
    [[nodiscard]] double first_wave_share() const noexcept { return ratio(first_wave_moves, moves, 1); }
    bool operator==(const PlanStatistics&) const = default;

  private:
    static double ratio(std::int64_t part, std::int64_t whole, double otherwise) noexcept {
        return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : otherwise;
    }
};
template <class F>
constexpr void visit_fields(std::type_identity<PlanStatistics>, F&& field) {
    field("moves", &PlanStatistics::moves);
    field("moved_tasks", &PlanStatistics::moved_tasks);
    field("move_cost", &PlanStatistics::move_cost);
    field("relocation_cost", &PlanStatistics::relocation_cost);
    field("disturbed_jobs", &PlanStatistics::disturbed_jobs);
    field("waves", &PlanStatistics::waves);
    field("first_wave_moves", &PlanStatistics::first_wave_moves);
    field("most_moves_at_once", &PlanStatistics::most_moves_at_once);
    field("vacated_nodes", &PlanStatistics::vacated_nodes);
    field("vacated_gpus", &PlanStatistics::vacated_gpus);
    field("opened_nodes", &PlanStatistics::opened_nodes);
    field("opened_gpus", &PlanStatistics::opened_gpus);
    field("vacated_domains", &PlanStatistics::vacated_domains);
    field("not_fully_occupied_before", &PlanStatistics::not_fully_occupied_before);
    field("not_fully_occupied_after", &PlanStatistics::not_fully_occupied_after);
}

/// Counts the effects of `plan` on `cluster`. O(nodes + moves), plus one copy of the cluster.
/// @throws InvalidInput for a plan that does not fit the snapshot
[[nodiscard]] PlanStatistics plan_statistics(const Cluster& cluster, const Plan& plan);

/// The same if `after`, the cluster as the plan leaves it, is known.
[[nodiscard]] PlanStatistics plan_statistics(const Cluster& before, const Cluster& after, const Plan& plan);

/// Returns the nodes with a task other than daemons before and none after, ascending. O(nodes)
[[nodiscard]] std::vector<NodeId> vacated_nodes(const Cluster& before, const Cluster& after);

/// Returns the nodes with daemons at most before, to which moves lead, ascending. O(moves)
[[nodiscard]] std::vector<NodeId> opened_nodes(const Cluster& before, std::span<const Move> moves);

// ---- statistics of a search -----------------------------------------------------------------------------

/// How often a search could not make a move that it considered, by the first obstacle. A constraint counts
/// when a task is offered a destination. Rankings do not offer every node: for example, not those with too
/// few idle GPUs.
struct Refusals {
    std::int64_t refused_by_gpu = 0;         ///< too few idle GPUs, or no GPU with enough left for a fraction
    std::int64_t refused_by_gpu_memory = 0;  ///< too little GPU memory left
    std::int64_t refused_by_cpu = 0;
    std::int64_t refused_by_memory = 0;
    std::int64_t refused_by_resource = 0;     ///< a named resource or a device
    std::int64_t refused_by_eligibility = 0;  ///< GPU model, node selector, node affinity, taint or cordon
    std::int64_t refused_by_hardware = 0;     ///< no set of GPUs within the guaranteed NUMA node or socket
    std::int64_t refused_by_anti_affinity = 0;
    std::int64_t refused_by_affinity = 0;
    std::int64_t refused_by_network = 0;  ///< the job must stay within another domain
    std::int64_t refused_by_avoid = 0;
    std::int64_t refused_by_near = 0;
    std::int64_t refused_by_spread = 0;
    std::int64_t refused_by_rule = 0;     ///< the `rule` of the options
    std::int64_t refused_by_victims = 0;  ///< the node is full, and its movable tasks free too little
    std::int64_t refused_by_chain = 0;    ///< the current chain already passes through the node
    std::int64_t refused_by_price = 0;    ///< not worth the moves: `price`, `max_others` or `open_price`
    std::int64_t refused_by_budget = 0;   ///< chains beyond `max_moves` or `max_move_cost`

    /// Counts a move that a constraint prevents. `Obstacle::none` counts nothing.
    void count(Obstacle obstacle) noexcept;
    bool operator==(const Refusals&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<Refusals>, F&& field) {
    field("refused_by_gpu", &Refusals::refused_by_gpu);
    field("refused_by_gpu_memory", &Refusals::refused_by_gpu_memory);
    field("refused_by_cpu", &Refusals::refused_by_cpu);
    field("refused_by_memory", &Refusals::refused_by_memory);
    field("refused_by_resource", &Refusals::refused_by_resource);
    field("refused_by_eligibility", &Refusals::refused_by_eligibility);
    field("refused_by_hardware", &Refusals::refused_by_hardware);
    field("refused_by_anti_affinity", &Refusals::refused_by_anti_affinity);
    field("refused_by_affinity", &Refusals::refused_by_affinity);
    field("refused_by_network", &Refusals::refused_by_network);
    field("refused_by_avoid", &Refusals::refused_by_avoid);
    field("refused_by_near", &Refusals::refused_by_near);
    field("refused_by_spread", &Refusals::refused_by_spread);
    field("refused_by_rule", &Refusals::refused_by_rule);
    field("refused_by_victims", &Refusals::refused_by_victims);
    field("refused_by_chain", &Refusals::refused_by_chain);
    field("refused_by_price", &Refusals::refused_by_price);
    field("refused_by_budget", &Refusals::refused_by_budget);
}

/// Results of one round.
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

/// Work of a search in all its parts, and the obstacles it met. Does not depend on the machine.
struct SearchCounters : Refusals {
    std::int64_t nodes_tried = 0;           ///< attempts to vacate a node
    std::int64_t eject_calls = 0;           ///< requests for a place, at all depths
    std::int64_t destinations_scanned = 0;  ///< destinations considered
    std::int64_t requests_dominated = 0;    ///< requests that fail because an easier one failed before
    std::int64_t exchanges_tried = 0;       ///< attempts to vacate other nodes instead of some
    std::int64_t exchanges_made = 0;        ///< attempts that were no loss

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

/// Numbers about a plan and about the search for it.
struct Statistics : PlanStatistics, SearchCounters {
    std::int64_t price = 0;           ///< thousandths of a unit of weight for each unit of `relocation_cost`
    std::int64_t vacated_weight = 0;  ///< weight of the vacated nodes: by default their GPUs
    std::int64_t open_price = 0;      ///< thousandths for each unit of `opened_weight`
    std::int64_t opened_weight = 0;   ///< weight of the opened nodes
    /// 1000 x `vacated_weight` - `open_price` x `opened_weight` - `price` x `relocation_cost`
    std::int64_t value_milli = 0;
    std::int64_t hops = 0;            ///< moves to a temporary place
    std::int64_t dropped_chains = 0;  ///< chains that could not be ordered, each of which vacates a node
    std::int64_t goal_before = 0;     ///< empty nodes, or slots, that count for the goal before the plan
    std::int64_t goal_after = 0;      ///< the same after the plan
    /// Proven maximum of `goal_after`, for goals of empty nodes. Absent with `bound_method` none or
    /// `open_price`.
    std::optional<std::int64_t> goal_at_most{};
    /// Proven minimum of `relocation_cost` for plans that come as close to the goal. Absent as
    /// `goal_at_most`.
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

/// A plan with its bound, its statistics, and the reason why the search ended.
struct Result {
    Plan plan;
    Statistics stats;
    StopReason stop_reason = StopReason::completed;
};

/// Converts statistics for `gpusched.plan` files (`PlanSpec::stats`): every number under its name, the number
/// of `rounds`, and the results of each round as `round_1_vacated_nodes` and so on.
[[nodiscard]] std::map<std::string, double> to_stats(const Statistics& statistics);

/// Reads the rounds from the `stats` of a plan. Empty if the plan has none.
[[nodiscard]] std::vector<RoundStatistics> rounds_of(const PlanSpec& plan);

namespace detail {
/// Replaces `best` by `other` if `better`. The counters of both searches are added in either case.
void keep_better(Result& best, Result other, bool better);
}  // namespace detail

// ---- report ---------------------------------------------------------------------------------------------

/// Effects of a plan on one kind of GPU.
struct ModelValue {
    std::string gpu_model;           ///< empty for nodes without a model
    std::int64_t vacated_nodes = 0;  ///< nodes that become empty
    std::int64_t vacated_gpus = 0;   ///< GPUs of the vacated nodes
    std::int64_t moved_tasks = 0;    ///< tasks that leave nodes of this model
    bool operator==(const ModelValue&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<ModelValue>, F&& field) {
    field("gpu_model", &ModelValue::gpu_model);
    field("vacated_nodes", &ModelValue::vacated_nodes);
    field("vacated_gpus", &ModelValue::vacated_gpus);
    field("moved_tasks", &ModelValue::moved_tasks);
}

/// Costs and gains of a plan, in total and per GPU model.
struct ValueReport : PlanStatistics {
    std::vector<ModelValue> models;  ///< in the order of the snapshot's model names; only those with a change
    bool operator==(const ValueReport&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<ValueReport>, F&& field) {
    visit_fields(std::type_identity<PlanStatistics>{}, field);
    field("models", &ValueReport::models);
}

/// Reports what `plan` disturbs and what it frees, before anything moves. O(nodes + moves)
/// @throws InvalidInput for a plan that does not fit the snapshot
[[nodiscard]] ValueReport value_report(const Cluster& cluster, const Plan& plan);

/// Returns the report as a few lines of text.
[[nodiscard]] std::string to_text(const ValueReport& report);

}  // namespace gpusched::consolidation
