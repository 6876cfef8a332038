// SPDX-License-Identifier: Apache-2.0
#include <gpusched/config.hpp>
#include <gpusched/consolidation/value_report.hpp>
#include <gpusched/model/cluster.hpp>
#include <gpusched/model/plan.hpp>

#include <cstdio>
#include <utility>

namespace gpusched::consolidation {

GPUSCHED_EXPORT ValueReport value_report(const Cluster& cluster, const Plan& plan) {
    const auto after = apply(cluster, plan);
    const auto& inv = cluster.inventory();
    ValueReport report{plan_statistics(cluster, after, plan), {}};
    std::vector<ModelValue> models(inv.gpu_models.size() + 1);  // the last: nodes without a model
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
    const auto n = [](std::int64_t value) { return std::to_string(value); };
    std::string text = "frees " + n(report.vacated_nodes) + " nodes, " + n(report.vacated_gpus) + " GPUs, " +
                       n(report.vacated_domains) + " network domains\n" +
                       (report.opened_nodes == 0 ? ""
                                                 : "opens " + n(report.opened_nodes) + " nodes, " +
                                                       n(report.opened_gpus) + " GPUs\n") +
                       "moves " + n(report.moved_tasks) + " tasks of " + n(report.disturbed_jobs) +
                       " jobs in " + n(report.moves) + " moves (cost " + n(report.move_cost) + ") and " +
                       n(report.waves) + " waves, at most " + n(report.most_moves_at_once) + " at once\n" +
                       "per move: " + number(report.vacated_gpus_per_move()) + " GPUs, " +
                       number(report.vacated_nodes_per_move()) + " nodes\n";
    for (const auto& model : report.models)
        text += "  " + (model.gpu_model.empty() ? std::string("(no GPU model)") : model.gpu_model) +
                ": frees " + n(model.vacated_nodes) + " nodes, " + n(model.vacated_gpus) + " GPUs; moves " +
                n(model.moved_tasks) + " tasks\n";
    return text;
}

}  // namespace gpusched::consolidation
