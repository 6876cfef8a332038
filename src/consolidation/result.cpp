// SPDX-License-Identifier: Apache-2.0
// Statistics of plans and searches, and the value report.
#include <gpusched/config.hpp>
#include <gpusched/consolidation/result.hpp>
#include <gpusched/core/text.hpp>
#include <gpusched/fragmentation/occupancy.hpp>
#include <gpusched/model/plan.hpp>

#include <cstddef>
#include <cstdio>
#include <utility>

namespace gpusched::consolidation {

namespace detail {
// The name of a round's number in `stats`. Rounds are counted from 1.
static std::string round_name(std::size_t round, const char* field) {
    return "round_" + std::to_string(round + 1) + "_" + field;
}
}  // namespace detail

// The counter of a constraint; null for those of evictions.
static std::int64_t Refusals::*counter_of(Obstacle obstacle) noexcept {
    switch (obstacle) {
    case Obstacle::cordoned:
    case Obstacle::not_ready:
    case Obstacle::not_eligible:
    case Obstacle::gpu_model:
    case Obstacle::node_selector:
    case Obstacle::node_affinity:
    case Obstacle::taint:
        return &Refusals::refused_by_eligibility;
    case Obstacle::cpu:
        return &Refusals::refused_by_cpu;
    case Obstacle::memory:
        return &Refusals::refused_by_memory;
    case Obstacle::resource:
    case Obstacle::device:
        return &Refusals::refused_by_resource;
    case Obstacle::gpu:
        return &Refusals::refused_by_gpu;
    case Obstacle::gpu_memory:
        return &Refusals::refused_by_gpu_memory;
    case Obstacle::hardware:
        return &Refusals::refused_by_hardware;
    case Obstacle::anti_affinity:
        return &Refusals::refused_by_anti_affinity;
    case Obstacle::affinity:
        return &Refusals::refused_by_affinity;
    case Obstacle::network:
        return &Refusals::refused_by_network;
    case Obstacle::avoid:
        return &Refusals::refused_by_avoid;
    case Obstacle::near:
        return &Refusals::refused_by_near;
    case Obstacle::spread:
        return &Refusals::refused_by_spread;
    case Obstacle::none:
    case Obstacle::gang:
    case Obstacle::disruption_budget:
    case Obstacle::waiting:
        break;
    }
    return nullptr;
}

GPUSCHED_EXPORT void Refusals::count(Obstacle obstacle) noexcept {
    if (const auto counter = counter_of(obstacle)) ++(this->*counter);
}

GPUSCHED_EXPORT SearchCounters& SearchCounters::operator+=(const SearchCounters& other) noexcept {
    visit_fields(std::type_identity<SearchCounters>{},
                 [&](const char*, auto member) { this->*member += other.*member; });
    return *this;
}

GPUSCHED_EXPORT void detail::keep_better(Result& best, Result other, bool better) {
    SearchCounters counters = best.stats;
    counters += other.stats;
    if (better) best = std::move(other);
    static_cast<SearchCounters&>(best.stats) = counters;
}

GPUSCHED_EXPORT std::map<std::string, double> to_stats(const Statistics& statistics) {
    std::map<std::string, double> stats;
    visit_fields(std::type_identity<Statistics>{}, [&](const char* name, auto member) {
        const auto& value = statistics.*member;
        if constexpr (std::is_arithmetic_v<std::remove_cvref_t<decltype(value)>>)
            stats[name] = static_cast<double>(value);
        else if (value)
            stats[name] = static_cast<double>(*value);
    });
    stats["rounds"] = static_cast<double>(statistics.rounds.size());
    for (std::size_t r = 0; r < statistics.rounds.size(); ++r)
        visit_fields(std::type_identity<RoundStatistics>{}, [&](const char* name, auto member) {
            stats[detail::round_name(r, name)] = static_cast<double>(statistics.rounds[r].*member);
        });
    return stats;
}

GPUSCHED_EXPORT std::vector<RoundStatistics> rounds_of(const PlanSpec& plan) {
    std::vector<RoundStatistics> rounds;
    for (bool found = true; found;) {
        found = false;
        RoundStatistics round;
        visit_fields(std::type_identity<RoundStatistics>{}, [&](const char* name, auto member) {
            const auto at = plan.stats.find(detail::round_name(rounds.size(), name));
            // A plan from another source may hold anything under that name.
            if (at == plan.stats.end() || !(at->second >= 0 && at->second <= 0x1p53)) return;
            round.*member = static_cast<std::int64_t>(at->second);
            found = true;
        });
        if (found) rounds.push_back(round);
    }
    return rounds;
}

namespace detail {

static std::int64_t vacated_domains(const Cluster& before, const Cluster& after) {
    const auto& inv = before.inventory();
    const Level deepest = inv.deepest_level();
    if (deepest == node_level) return 0;
    std::vector<std::uint8_t> used_before(inv.domain_count(deepest)), used_after(inv.domain_count(deepest));
    for (const auto node : before.nodes()) {
        if (!inv.position_known(deepest, node)) continue;
        const auto domain = index(inv.domain(deepest, node));
        used_before[domain] |= before.occupants(node) > 0;
        used_after[domain] |= after.occupants(node) > 0;
    }
    std::int64_t count = 0;
    for (std::size_t d = 0; d < used_before.size(); ++d) count += used_before[d] && !used_after[d];
    return count;
}

}  // namespace detail

GPUSCHED_EXPORT std::vector<NodeId> vacated_nodes(const Cluster& before, const Cluster& after) {
    std::vector<NodeId> nodes;
    for (const auto node : before.nodes())
        if (before.occupants(node) > 0 && after.occupants(node) == 0) nodes.push_back(node);
    return nodes;
}

GPUSCHED_EXPORT std::vector<NodeId> opened_nodes(const Cluster& before, std::span<const Move> moves) {
    std::vector<NodeId> nodes;
    for (const auto& move : moves)
        if (before.occupants(move.to) == 0) nodes.push_back(move.to);
    std::sort(nodes.begin(), nodes.end());
    nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
    return nodes;
}

GPUSCHED_EXPORT PlanStatistics plan_statistics(const Cluster& before, const Cluster& after,
                                               const Plan& plan) {
    const auto& inv = before.inventory();
    PlanStatistics stats;
    stats.moves = static_cast<std::int64_t>(plan.moves.size());
    stats.waves = plan.waves;
    std::int64_t in_wave = 0;  // moves of the wave of the last move
    const Move* last = nullptr;
    std::vector<std::uint8_t> task_moved(before.task_slots()), job_moved(inv.job_names.size());
    for (const auto& move : plan.moves) {
        stats.move_cost += inv.tasks.move_cost[index(move.task)];
        in_wave = last != nullptr && last->wave == move.wave ? in_wave + 1 : 1;
        last = &move;
        stats.most_moves_at_once = std::max(stats.most_moves_at_once, in_wave);
        stats.first_wave_moves += move.wave == 0;
        if (std::exchange(task_moved[index(move.task)], std::uint8_t{1})) continue;
        const bool elsewhere = after.node_of(move.task) != before.node_of(move.task);
        stats.moved_tasks += elsewhere;
        if (elsewhere || after.gpus_of(move.task) != before.gpus_of(move.task))
            stats.relocation_cost += inv.tasks.move_cost[index(move.task)];
        const auto job = inv.tasks.job[index(move.task)];
        stats.disturbed_jobs += job == none<JobId> || !std::exchange(job_moved[index(job)], std::uint8_t{1});
    }
    for (const auto node : vacated_nodes(before, after)) {
        ++stats.vacated_nodes;
        stats.vacated_gpus += gpu_count(before.healthy_gpus(node));
    }
    for (const auto node : opened_nodes(before, plan.moves)) {
        ++stats.opened_nodes;
        stats.opened_gpus += gpu_count(before.healthy_gpus(node));
    }
    stats.vacated_domains = detail::vacated_domains(before, after);
    stats.not_fully_occupied_before = fragmentation::occupancy(before).not_fully_occupied;
    stats.not_fully_occupied_after = fragmentation::occupancy(after).not_fully_occupied;
    return stats;
}

GPUSCHED_EXPORT PlanStatistics plan_statistics(const Cluster& cluster, const Plan& plan) {
    return plan_statistics(cluster, apply(cluster, plan), plan);
}

GPUSCHED_EXPORT ValueReport value_report(const Cluster& cluster, const Plan& plan) {
    const auto after = apply(cluster, plan);
    const auto& inv = cluster.inventory();
    ValueReport report{plan_statistics(cluster, after, plan), {}};
    std::vector<ModelValue> models(inv.gpu_models.size() + 1);  // the last one: nodes without a model
    for (std::size_t m = 0; m < inv.gpu_models.size(); ++m) models[m].gpu_model = inv.gpu_models[m];
    const auto model_of = [&](NodeId node) -> ModelValue& {
        const auto model = inv.nodes.gpu_model[index(node)];
        return model != none<GpuModelId> ? models[index(model)] : models.back();
    };
    std::vector<std::uint8_t> moved(cluster.task_slots());
    for (const auto& move : plan.moves)
        if (!std::exchange(moved[index(move.task)], std::uint8_t{1}))
            ++model_of(cluster.node_of(move.task)).moved_tasks;
    for (const auto node : vacated_nodes(cluster, after)) {
        ++model_of(node).vacated_nodes;
        model_of(node).vacated_gpus += gpu_count(cluster.healthy_gpus(node));
    }
    for (auto& model : models)
        if (model.vacated_nodes > 0 || model.moved_tasks > 0) report.models.push_back(std::move(model));
    return report;
}

GPUSCHED_EXPORT std::string to_text(const ValueReport& report) {
    const auto number = [](double value) {
        char text[32];
        std::snprintf(text, sizeof text, "%.2f", value);
        return std::string(text);
    };
    const auto n = [](std::int64_t value, const char* noun) {
        return concat(value, " ", noun, value == 1 ? "" : "s");
    };
    std::string text = "frees " + n(report.vacated_nodes, "node") + ", " + n(report.vacated_gpus, "GPU") +
                       ", " + n(report.vacated_domains, "network domain") + "\n" +
                       (report.opened_nodes == 0 ? ""
                                                 : "opens " + n(report.opened_nodes, "node") + ", " +
                                                       n(report.opened_gpus, "GPU") + "\n") +
                       "moves " + n(report.moved_tasks, "task") + " of " + n(report.disturbed_jobs, "job") +
                       " in " + n(report.moves, "move") +
                       concat(" (cost ", report.move_cost, ") and ", n(report.waves, "wave"), ", at most ",
                              report.most_moves_at_once, " at once\n") +
                       "per move: " + number(report.vacated_gpus_per_move()) + " GPUs, " +
                       number(report.vacated_nodes_per_move()) + " nodes\n";
    for (const auto& model : report.models)
        text += "  " + (model.gpu_model.empty() ? std::string("(no GPU model)") : model.gpu_model) +
                ": frees " + n(model.vacated_nodes, "node") + ", " + n(model.vacated_gpus, "GPU") +
                "; moves " + n(model.moved_tasks, "task") + "\n";
    return text;
}

}  // namespace gpusched::consolidation
