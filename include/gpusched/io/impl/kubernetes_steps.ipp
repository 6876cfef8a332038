#pragma once

#include <gpusched/io/detail/kubernetes_names.hpp>
#include <gpusched/io/detail/plan_text.hpp>
#include <gpusched/io/kubernetes_steps.hpp>

namespace GPUSCHED_NAMESPACE::io {

GPUSCHED_INLINE std::string plan_to_kubernetes_steps(const PlanSpec& plan, const KubernetesOptions& options) {
    detail::require_kubernetes_names(plan, options.default_namespace);
    // Names hold lower-case letters, digits, '-' and '.' only, so that nothing needs quoting below.
    const auto evict = [&](const std::string& task) {
        const auto pod = detail::pod_name(task, options.default_namespace);
        return "evict " + std::string(pod.space) + " " + std::string(pod.name);
    };
    const auto gpus = [](const std::vector<int>& list) {
        return list.empty() ? std::string() : ", GPU " + detail::join(list, " ");
    };
    std::string out = "#!/bin/sh\n"
                      "# " +
                      std::to_string(plan.evictions.size()) + " evictions, " +
                      std::to_string(plan.moves.size()) + " moves in " + std::to_string(plan.waves) +
                      " waves, " + std::to_string(plan.placements.size()) + " placements; vacates " +
                      std::to_string(plan.vacated_nodes.size()) +
                      " nodes.\n"
                      "set -eu\n\n"
                      "evict() {  # namespace, pod\n"
                      "  printf '{\"apiVersion\":\"policy/v1\",\"kind\":\"Eviction\","
                      "\"metadata\":{\"namespace\":\"%s\",\"name\":\"%s\"}}' \"$1\" \"$2\" |\n"
                      "    kubectl create --raw \"/api/v1/namespaces/$1/pods/$2/eviction\" -f -\n"
                      "}\n"
                      "confirm() {\n"
                      "  printf '%s Press Enter to go on. ' \"$1\"\n"
                      "  read -r _\n"
                      "}\n";
    if (!plan.vacated_nodes.empty()) out += "\n# Nothing may start on the nodes to be vacated.\n";
    for (const auto& node : plan.vacated_nodes) out += "kubectl cordon " + node + "\n";
    if (!plan.evictions.empty()) out += "\n# Evictions.\n";
    for (const auto& task : plan.evictions) out += evict(task) + "\n";
    const auto moves = detail::moves_by_wave(plan);
    for (std::size_t i = 0; i < moves.size(); ++i) {
        const auto& move = *moves[i];
        const auto wave = "ave " + std::to_string(move.wave);
        if (i == 0 || moves[i - 1]->wave != move.wave) out += "\n# W" + wave + ".\n";
        out += evict(move.task) + "  # " + move.from + " -> " + move.to + gpus(move.gpus) +
               (move.how == MoveMode::restart ? ", restarts" : "") + "\n";
        if (i + 1 == moves.size() || moves[i + 1]->wave != move.wave)
            out += "confirm 'W" + wave + " is done when all replacements run where they should.'\n";
    }
    if (!plan.placements.empty()) out += "\n# Pending pods that now have room.\n";
    for (const auto& placement : plan.placements) {
        const auto pod = detail::pod_name(placement.task, options.default_namespace);
        out += "# " + std::string(pod.space) + " " + std::string(pod.name) + " -> " + placement.node +
               gpus(placement.gpus) + "\n";
    }
    return out;
}

}  // namespace GPUSCHED_NAMESPACE::io
