#pragma once

#include <gpusched/consolidation/value_report.hpp>
#include <gpusched/model/apply.hpp>

#include <algorithm>
#include <cstdio>
#include <utility>

namespace gpusched::consolidation {

GPUSCHED_INLINE ValueReport value_report(const Cluster& cluster, const Plan& plan) {
    const auto after = apply(cluster, plan);
    const auto& inv = cluster.inventory();
    ValueReport report;
    report.moves = static_cast<std::int64_t>(plan.moves.size());
    report.waves = plan.waves;
    std::vector<std::int64_t> per_wave(plan.waves);
    std::vector<std::uint8_t> task_moved(cluster.task_count()), job_moved(inv.job_names.size());
    std::vector<ModelValue> models(inv.gpu_models.size() + 1);  // the last: nodes without a model
    for (std::size_t m = 0; m < inv.gpu_models.size(); ++m) models[m].gpu_model = inv.gpu_models[m];
    const auto model_of = [&](NodeId node) -> ModelValue& {
        const auto model = inv.nodes.gpu_model[index(node)];
        return model != none<GpuModelId> ? models[index(model)] : models.back();
    };
    for (const auto& move : plan.moves) {
        report.move_cost += inv.tasks.move_cost[index(move.task)];
        ++per_wave[move.wave];
        if (std::exchange(task_moved[index(move.task)], std::uint8_t{1})) continue;
        ++report.pods_moved;
        ++model_of(cluster.node_of(move.task)).pods_moved;
        const auto job = inv.tasks.job[index(move.task)];
        report.jobs_disturbed += job == none<JobId> || !std::exchange(job_moved[index(job)], std::uint8_t{1});
    }
    if (!per_wave.empty()) report.most_moved_at_once = *std::max_element(per_wave.begin(), per_wave.end());
    for (const auto node : cluster.nodes()) {
        if (cluster.occupants(node) == 0 || after.occupants(node) > 0) continue;
        const auto gpus = gpu_count(cluster.healthy_gpus(node));
        ++report.nodes_freed;
        report.gpus_freed += gpus;
        ++model_of(node).vacated_nodes;
        model_of(node).vacated_gpus += gpus;
    }
    if (const Level deepest = inv.network_levels() - 1; deepest >= 0) {
        std::vector<std::uint8_t> used_before(inv.domain_count(deepest)),
            used_after(inv.domain_count(deepest));
        for (const auto node : cluster.nodes()) {
            if (!inv.position_known(deepest, node)) continue;
            const auto domain = index(inv.domain(deepest, node));
            used_before[domain] |= cluster.occupants(node) > 0;
            used_after[domain] |= after.occupants(node) > 0;
        }
        for (std::size_t d = 0; d < used_before.size(); ++d)
            report.domains_freed += used_before[d] && !used_after[d];
    }
    if (report.moves > 0) {
        report.gpus_per_move = static_cast<double>(report.gpus_freed) / static_cast<double>(report.moves);
        report.nodes_per_move = static_cast<double>(report.nodes_freed) / static_cast<double>(report.moves);
    }
    for (const auto& model : models)
        if (model.vacated_nodes > 0 || model.pods_moved > 0) report.models.push_back(model);
    return report;
}

GPUSCHED_INLINE std::string to_text(const ValueReport& report) {
    const auto number = [](double value) {
        char text[32];
        std::snprintf(text, sizeof text, "%.2f", value);
        return std::string(text);
    };
    const auto n = [](std::int64_t value) { return std::to_string(value); };
    std::string text =
        "frees " + n(report.nodes_freed) + " nodes, " + n(report.gpus_freed) + " GPUs, " +
        n(report.domains_freed) + " network domains\n" + "moves " + n(report.pods_moved) + " pods of " +
        n(report.jobs_disturbed) + " jobs in " + n(report.moves) + " moves (cost " + n(report.move_cost) +
        ") and " + n(report.waves) + " waves, at most " + n(report.most_moved_at_once) + " at once\n" +
        "per move: " + number(report.gpus_per_move) + " GPUs, " + number(report.nodes_per_move) + " nodes\n";
    for (const auto& model : report.models)
        text += "  " + (model.gpu_model.empty() ? std::string("(no GPU model)") : model.gpu_model) +
                ": frees " + n(model.vacated_nodes) + " nodes, " + n(model.vacated_gpus) + " GPUs; moves " +
                n(model.pods_moved) + " pods\n";
    return text;
}

}  // namespace gpusched::consolidation
