// SPDX-License-Identifier: Apache-2.0
#include "io/kubernetes_names.hpp"
#include "io/plan_text.hpp"

#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/io/pod_migration_jobs.hpp>
#include <gpusched/json/writer.hpp>

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

namespace gpusched::io {

namespace detail {

/// A double-quoted YAML scalar, which JSON strings are.
static std::string yaml(std::string_view text) {
    std::string out;
    json::Writer(out).write(text);
    return out;
}

/// The class of the devices among those GPUs of the node; where these say nothing, the class that the task prefers.
static std::string device_class(const TaskSpec& task, const NodeSpec* node, const std::vector<int>& gpus) {
    if (node != nullptr) {
        auto first = node->gpu_count;
        for (const auto& group : node->devices) {
            const auto in_group = [&](int gpu) { return gpu >= first && gpu - first < group.count; };
            if (std::any_of(gpus.begin(), gpus.end(), in_group)) return group.device_class;
            first += group.count;
        }
    }
    return task.device_classes.empty() ? std::string() : task.device_classes.front();
}

/// What a reservation asks for, as lines of a resource list.
/// @param devices the class of its devices
static std::string yaml_requests(const TaskSpec& task, const std::string& devices,
                                 const std::string& indent) {
    std::string out = indent + "cpu: " + yaml(std::to_string(task.cpu_milli) + "m") + "\n" + indent +
                      "memory: " + yaml(std::to_string(task.memory_mib) + "Mi") + "\n";
    for (const auto& [name, amount] : task.resources)
        if (name != "pods")  // a reservation is one; no container asks for it
            out += indent + yaml(name) + ": " + yaml(std::to_string(amount)) + "\n";
    if (task.device_count > 0)
        out += indent + yaml(devices) + ": " + yaml(std::to_string(task.device_count)) + "\n";
    if (task.gpu_count == 0) return out;
    if (task.gpu_share_milli == whole_gpu_milli)
        return out + indent + "nvidia.com/gpu: " + yaml(std::to_string(task.gpu_count)) + "\n";
    const auto percent = yaml(std::to_string((task.gpu_share_milli + 9) / 10));
    return out + indent + "koordinator.sh/gpu-core: " + percent + "\n" + indent +
           "koordinator.sh/gpu-memory-ratio: " + percent + "\n";
}

static std::string yaml_tolerations(const TaskSpec& task, const std::string& indent) {
    if (task.tolerations.empty()) return {};
    std::string out = indent + "tolerations:\n";
    for (const auto& toleration : task.tolerations) {
        out += indent + "- operator: " + yaml(toleration.op) + "\n";
        if (!toleration.key.empty()) out += indent + "  key: " + yaml(toleration.key) + "\n";
        if (!toleration.value.empty()) out += indent + "  value: " + yaml(toleration.value) + "\n";
        if (!toleration.effect.empty()) out += indent + "  effect: " + yaml(toleration.effect) + "\n";
    }
    return out;
}

}  // namespace detail

GPUSCHED_EXPORT std::string plan_to_pod_migration_jobs(const PlanSpec& plan, const ClusterSpec& cluster,
                                                       const KoordinatorOptions& options) {
    std::unordered_map<std::string_view, const TaskSpec*> tasks;
    for (const auto& task : cluster.tasks) tasks.emplace(task.name, &task);
    std::unordered_map<std::string_view, const NodeSpec*> nodes;
    for (const auto& node : cluster.nodes) nodes.emplace(node.name, &node);
    const auto find_node = [&](const std::string& name) {
        const auto found = nodes.find(name);
        return found == nodes.end() ? nullptr : found->second;
    };
    Problems problems;
    if (!detail::is_kubernetes_name(options.name_prefix) || options.name_prefix.size() > 200)
        problems.add(bad_value("name_prefix", gpusched::quoted(printable(options.name_prefix)),
                               "a Kubernetes name of at most 200 characters"));
    if (!detail::is_kubernetes_name(options.scheduler_name))
        problems.add(bad_value("scheduler_name", gpusched::quoted(printable(options.scheduler_name)),
                               "a Kubernetes name"));
    check_fields(problems, options);
    for (const auto& move : plan.moves)
        if (!tasks.contains(move.task))
            problems.add("unknown task " + gpusched::quoted(printable(move.task)));
    problems.throw_if_any();
    detail::require_kubernetes_names(plan, options.default_namespace);

    std::string out;
    if (!plan.vacated_nodes.empty())
        out += "# First, so that nothing else starts on the nodes to be vacated:\n";
    for (const auto& node : plan.vacated_nodes) out += "# kubectl cordon " + node + "\n";
    const auto begin = [&](const std::string& step, std::size_t number, const std::string& wave) {
        out += "---\napiVersion: scheduling.koordinator.sh/v1alpha1\nkind: PodMigrationJob\nmetadata:\n  "
               "name: " +
               detail::yaml(options.name_prefix + "-" + step + "-" + std::to_string(number)) +
               "\n  labels:\n    gpusched/wave: " + detail::yaml(wave) + "\n";
    };
    const auto spec = [&](const std::string& task, bool paused, const char* mode) {
        const auto pod = detail::pod_name(task, options.default_namespace);
        out += std::string("spec:\n  paused: ") + (paused ? "true" : "false") +
               "\n  ttl: " + detail::yaml(std::to_string(options.ttl_s) + "s") + "\n  mode: " + mode +
               "\n  podRef:\n    namespace: " + detail::yaml(pod.space) +
               "\n    name: " + detail::yaml(pod.name) + "\n";
    };
    std::size_t number = 0;
    for (const auto& task : plan.evictions) {
        begin("evict", number++, "evictions");
        spec(task, false, "EvictDirectly");
    }
    number = 0;
    for (const auto* move : detail::moves_by_wave(plan)) {
        const auto& task = *tasks.at(move->task);
        const auto wave = std::to_string(move->wave);
        begin("wave-" + wave, number++, wave);
        out += "  annotations:\n    gpusched/from: " + detail::yaml(move->from) +
               "\n    gpusched/to: " + detail::yaml(move->to) +
               "\n    gpusched/gpus: " + detail::yaml(detail::join(move->gpus, " ")) + "\n";
        if (move->how != MoveMode::copy)
            out += "    gpusched/how: " + detail::yaml(enum_name(move->how)) + "\n";
        if (move->chain) out += "    gpusched/chain: " + detail::yaml(std::to_string(*move->chain)) + "\n";
        if (!move->serves.empty()) out += "    gpusched/for: " + detail::yaml(move->serves) + "\n";
        spec(move->task, move->wave > 0 || !plan.evictions.empty(), "ReservationFirst");
        const std::string indent(12, ' ');
        out += "  reservationOptions:\n    template:\n      spec:\n        template:\n          spec:\n" +
               indent + "schedulerName: " + detail::yaml(options.scheduler_name) + "\n" + indent +
               "containers:\n" + indent + "- name: reserved\n" + indent + "  resources:\n" + indent +
               "    requests:\n" +
               detail::yaml_requests(task, detail::device_class(task, find_node(move->to), move->gpus),
                                     indent + "      ") +
               detail::yaml_tolerations(task, indent) + indent + "affinity:\n" + indent +
               "  nodeAffinity:\n" + indent + "    requiredDuringSchedulingIgnoredDuringExecution:\n" +
               indent + "      nodeSelectorTerms:\n" + indent + "      - matchFields:\n" + indent +
               "        - key: metadata.name\n" + indent + "          operator: In\n" + indent +
               "          values: [" + detail::yaml(move->to) + "]\n";
    }
    if (!plan.placements.empty()) out += "# Pending pods that now have room:\n";
    for (const auto& placement : plan.placements)
        out += "# " + placement.task + " -> " + placement.node +
               (placement.gpus.empty() ? "" : ", GPU " + detail::join(placement.gpus, " ")) + "\n";
    return out;
}

}  // namespace gpusched::io
