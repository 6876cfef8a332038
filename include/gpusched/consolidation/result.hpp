// SPDX-License-Identifier: Apache-2.0
// What consolidation returns: the plan, its value and statistics, and a report of both.
#pragma once

#include <gpusched/core/stop_reason.hpp>
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

/// Weights, and so values, are compared in thousandths.
inline constexpr std::int64_t milli = 1000;

/// milli x `weight` - `price` x `cost`, in thousandths of a unit of weight; what does not fit into 64 bits is cut off.
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

/// What it costs to open nodes of so much weight, in thousandths: `weight` x `open_price`, cut off likewise.
[[nodiscard]] constexpr std::int64_t opening_milli(std::int64_t weight, std::int64_t open_price) noexcept {
    return -value_milli(0, weight, open_price);
}

/// What moves cost for each unit of weight, in millionths; the more, the less they are worth. Nothing gained: the most there is.
[[nodiscard]] constexpr std::int64_t price_of_moves(std::int64_t weight, std::int64_t cost) noexcept {
    constexpr auto most = std::numeric_limits<std::int64_t>::max();
    return weight <= 0 ? most : std::min(cost, most / 1'000'000) * 1'000'000 / weight;
}

/// Whether moves that cost `cost`, and `opening` thousandths for nodes that they open, are worth `weight`.
[[nodiscard]] constexpr bool is_worth(std::int64_t weight, std::int64_t cost, std::int64_t price,
                                      std::int64_t opening = 0) noexcept {
    return price == 0 && opening == 0 ? weight >= 0 : value_milli(weight, cost, price) >= opening;
}


/// Costs and gains of a plan, whoever made it.
struct PlanStatistics {
    // Cost
    std::int64_t moves = 0;        ///< all moves, hops included
    std::int64_t moved_tasks = 0;  ///< tasks whose last node differs from their first
    std::int64_t move_cost = 0;    ///< sum of `move_cost` over all moves
    /// Sum of `move_cost` over the tasks whose last node or GPUs differ from their first: what a price is for.
    std::int64_t relocation_cost = 0;
    std::int64_t disturbed_jobs = 0;      ///< jobs with a moved member; a task without a job counts as one
    std::int64_t waves = 0;               ///< how many waves
    std::int64_t first_wave_moves = 0;    ///< moves of the first wave
    std::int64_t most_moves_at_once = 0;  ///< moves of the largest wave
    // Gain
    std::int64_t vacated_nodes = 0;  ///< nodes that hold a task other than daemons before and none after
    std::int64_t vacated_gpus = 0;   ///< their healthy GPUs
    std::int64_t opened_nodes = 0;   ///< nodes that held none but daemons before, and that moves lead to
    std::int64_t opened_gpus = 0;    ///< their healthy GPUs
    std::int64_t vacated_domains =
        0;  ///< deepest network domains (racks, access switches) that lose all their tasks
    /// Nodes with a task and an idle GPU before, as counted by fragmentation::occupancy.
    std::int64_t not_fully_occupied_before = 0;
    std::int64_t not_fully_occupied_after = 0;  ///< the same, after

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

/// Counts what `plan` does to `cluster`. O(nodes + moves), plus one copy of the cluster.
/// @throws InvalidInput for a plan that does not fit the snapshot
[[nodiscard]] PlanStatistics plan_statistics(const Cluster& cluster, const Plan& plan);

/// The same where `after`, the cluster as the plan leaves it, is at hand.
[[nodiscard]] PlanStatistics plan_statistics(const Cluster& before, const Cluster& after, const Plan& plan);

/// The nodes that hold a task other than daemons before and none after, ascending. O(nodes)
[[nodiscard]] std::vector<NodeId> vacated_nodes(const Cluster& before, const Cluster& after);

/// The nodes that held no task but daemons before and that moves lead to, ascending. O(moves)
[[nodiscard]] std::vector<NodeId> opened_nodes(const Cluster& before, std::span<const Move> moves);


/// How often a search could not make a move that it looked at, by the first thing in the way. Constraints are counted where a
/// task was offered a destination; destinations that the ranking leaves out, such as nodes with too few idle GPUs, are not offered.
struct Refusals {
    std::int64_t refused_by_gpu = 0;  ///< too few idle GPUs, or no GPU with enough left for the fraction
    std::int64_t refused_by_gpu_memory = 0;  ///< GPUs with too little memory left
    std::int64_t refused_by_cpu = 0;
    std::int64_t refused_by_memory = 0;
    std::int64_t refused_by_resource = 0;     ///< a named resource, or devices beside the whole GPUs
    std::int64_t refused_by_eligibility = 0;  ///< GPU model, node selector, node affinity, taint or cordon
    std::int64_t refused_by_hardware = 0;     ///< no set of GPUs within the guaranteed NUMA node or socket
    std::int64_t refused_by_anti_affinity = 0;
    std::int64_t refused_by_affinity = 0;
    std::int64_t refused_by_network = 0;  ///< the job must stay within another domain
    std::int64_t refused_by_avoid = 0;
    std::int64_t refused_by_near = 0;
    std::int64_t refused_by_spread = 0;
    std::int64_t refused_by_rule = 0;     ///< the caller's `rule`
    std::int64_t refused_by_victims = 0;  ///< the node is full, and tasks that may leave it do not make room
    std::int64_t refused_by_chain = 0;    ///< the chain under construction runs through the node already
    std::int64_t refused_by_price =
        0;  ///< vacating the node would not be worth the moves: `price`, `max_others`, `open_price`
    std::int64_t refused_by_budget = 0;  ///< chains found that `max_moves` or `max_move_cost` keeps out

    /// Counts a move that a constraint refuses; `Obstacle::none` is none.
    void count(Obstacle obstacle) noexcept {
        switch (obstacle) {
        case Obstacle::none:
            break;
        case Obstacle::cordoned:
        case Obstacle::not_eligible:
        case Obstacle::gpu_model:
        case Obstacle::node_selector:
        case Obstacle::node_affinity:
        case Obstacle::taint:
            ++refused_by_eligibility;
            break;
        case Obstacle::cpu:
            ++refused_by_cpu;
            break;
        case Obstacle::memory:
            ++refused_by_memory;
            break;
        case Obstacle::resource:
        case Obstacle::device:
            ++refused_by_resource;
            break;
        case Obstacle::gpu:
            ++refused_by_gpu;
            break;
        case Obstacle::gpu_memory:
            ++refused_by_gpu_memory;
            break;
        case Obstacle::hardware:
            ++refused_by_hardware;
            break;
        case Obstacle::anti_affinity:
            ++refused_by_anti_affinity;
            break;
        case Obstacle::affinity:
            ++refused_by_affinity;
            break;
        case Obstacle::network:
            ++refused_by_network;
            break;
        case Obstacle::avoid:
            ++refused_by_avoid;
            break;
        case Obstacle::near:
            ++refused_by_near;
            break;
        case Obstacle::spread:
            ++refused_by_spread;
            break;
        case Obstacle::gang:
        case Obstacle::disruption_budget:
            break;  // of evictions
        }
    }
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


/// What happens to one kind of GPU.
struct ModelValue {
    std::string gpu_model;  ///< empty for nodes without a model
    /// How many nodes become empty.
    std::int64_t vacated_nodes = 0;
    /// How many GPUs they have.
    std::int64_t vacated_gpus = 0;
    std::int64_t moved_tasks = 0;  ///< tasks that leave nodes of this model
    bool operator==(const ModelValue&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<ModelValue>, F&& field) {
    field("gpu_model", &ModelValue::gpu_model);
    field("vacated_nodes", &ModelValue::vacated_nodes);
    field("vacated_gpus", &ModelValue::vacated_gpus);
    field("moved_tasks", &ModelValue::moved_tasks);
}

/// Costs and gains of a plan, in all and per GPU model.
struct ValueReport : PlanStatistics {
    std::vector<ModelValue> models;  ///< in the order of the snapshot's model names; only those with a change
    bool operator==(const ValueReport&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<ValueReport>, F&& field) {
    visit_fields(std::type_identity<PlanStatistics>{}, field);
    field("models", &ValueReport::models);
}

/// Weighs `plan` against `cluster`. O(nodes + moves). @throws InvalidInput for a plan that does not fit the snapshot
[[nodiscard]] ValueReport value_report(const Cluster& cluster, const Plan& plan);

/// The report as a few lines of text.
[[nodiscard]] std::string to_text(const ValueReport& report);

}  // namespace gpusched::consolidation
