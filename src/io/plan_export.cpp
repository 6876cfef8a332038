// SPDX-License-Identifier: Apache-2.0
// Writes plans as CSV, as kubectl calls and as PodMigrationJobs.
#include "io/documents.hpp"
#include "io/kubernetes_steps_script.hpp"  // made of kubernetes_steps.sh by CMake

#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/io/plan_export.hpp>
#include <gpusched/model/disturbance.hpp>
#include <gpusched/model/plan.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace gpusched::io {

namespace detail {

/// The moves in execution order.
static std::vector<const PlanSpec::Move*> moves_by_wave(const PlanSpec& plan) {
    std::vector<const PlanSpec::Move*> moves;
    for (const auto& move : plan.moves) moves.push_back(&move);
    std::ranges::stable_sort(moves, {}, [](const auto* move) { return move->wave; });
    return moves;
}

static void add_csv_row(std::string& out, std::span<const std::string_view> cells) {
    bool first = true;
    for (const auto cell : cells) {
        if (!first) out += ',';
        first = false;
        if (cell.find_first_of(",\"\r\n") == cell.npos) {
            out += cell;
            continue;
        }
        out += '"';
        for (const char c : cell) out += c == '"' ? "\"\"" : std::string(1, c);
        out += '"';
    }
    out += '\n';
}

}  // namespace detail

GPUSCHED_EXPORT std::string plan_to_csv(const PlanSpec& plan) {
    std::string out;
    using Cells = std::array<std::string_view, 9>;
    const auto row = [&](const Cells& cells, std::string_view name = {}) {
        const auto* const task = plan.find_task(name);
        std::string gpus;
        if (task != nullptr) {
            std::array<char, 32> digits{};
            const auto amount = static_cast<double>(task->gpu_milli) / 1000;
            gpus.assign(digits.data(), std::to_chars(digits.data(), digits.data() + 32, amount).ptr);
        }
        std::vector<std::string_view> all(cells.begin(), cells.end());
        if (task == nullptr)
            all.resize(all.size() + 3);
        else
            all.insert(all.end(), {namespace_of(*task),
                                   task->owner_kind ? std::string_view(*task->owner_kind) : "", gpus});
        detail::add_csv_row(out, all);
    };
    const auto how = treatments(plan);
    out += "step,wave,task,from,to,gpus,how,chain,for,namespace,owner_kind,task_gpus\n";
    for (const auto& task : plan.evictions)
        row({"evict", "", task, "", "", "", enum_name(how.at(task))}, task);
    for (const auto* move : detail::moves_by_wave(plan))
        row({"move", std::to_string(move->wave), move->task, move->from, move->to,
             detail::joined(move->gpus, ";"), enum_name(move->how),
             move->chain ? std::to_string(*move->chain) : "", move->serves},
            move->task);
    for (const auto& placement : plan.placements)
        row({"place", "", placement.task, "", placement.node, detail::joined(placement.gpus, ";")},
            placement.task);
    for (const auto& node : plan.vacated_nodes) row({"vacate", "", "", node});
    for (const auto& node : plan.opened_nodes) row({"open", "", "", "", node});
    return out;
}

namespace detail {

/// A pod's namespace and name: views of the task's name and the default namespace.
struct PodName {
    std::string_view space, name;
};

/// Splits "namespace/pod".
static PodName pod_name(std::string_view task, std::string_view default_namespace) {
    const auto slash = task.find('/');
    if (slash == task.npos) return {default_namespace, task};
    return {task.substr(0, slash), task.substr(slash + 1)};
}

/// Reports every name of the plan that Kubernetes would not accept, once.
/// @throws InvalidInput with all of them
static void require_kubernetes_names(const PlanSpec& plan, std::string_view default_namespace) {
    Problems problems;
    std::set<std::string_view> seen_tasks, seen_nodes;
    const auto task = [&](std::string_view name) {
        if (!seen_tasks.insert(name).second) return;
        const auto pod = pod_name(name, default_namespace);
        if (!is_kubernetes_label(pod.space) || !is_kubernetes_name(pod.name))
            problems.add("task " + in_quotes(name) +
                         ": expected a Kubernetes pod name, with or without \"namespace/\" before it");
    };
    const auto node = [&](std::string_view name) {
        if (seen_nodes.insert(name).second && !is_kubernetes_name(name))
            problems.add("node " + in_quotes(name) + ": expected a Kubernetes node name");
    };
    if (!is_kubernetes_label(default_namespace))
        problems.add(bad_value("default_namespace", in_quotes(default_namespace), "a Kubernetes namespace"));
    for (const auto& name : plan.evictions) task(name);
    for (const auto& move : plan.moves) {
        task(move.task);
        node(move.from);
        node(move.to);
    }
    for (const auto& placement : plan.placements) {
        task(placement.task);
        node(placement.node);
    }
    for (const auto& name : plan.vacated_nodes) node(name);
    problems.throw_if_any();
}

/// FNV-1a in hexadecimal digits, which identifies the steps of a script.
static std::string fingerprint(std::string_view text) {
    std::uint64_t hash = 0xcbf29ce484222325u;
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    std::array<char, 16> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), hash, 16).ptr;
    return {digits.data(), end};
}

/// The nodes that pods leave, without destinations and vacated nodes. Replacements must not return to them
/// during the plan.
static std::set<std::string> held_nodes(const PlanSpec& plan) {
    std::set<std::string> out;
    for (const auto& move : plan.moves) out.insert(move.from);
    for (const auto& move : plan.moves) out.erase(move.to);
    for (const auto& node : plan.vacated_nodes) out.erase(node);
    return out;
}

/// The calls of the shell functions, in order.
static std::string kubernetes_steps(const PlanSpec& plan, std::string_view default_namespace) {
    // Names hold lower-case letters, digits, '-' and '.' only, so that nothing needs quoting below.
    const auto pod = [&](const std::string& task) {
        const auto name = pod_name(task, default_namespace);
        return std::string(name.space) + " " + std::string(name.name);
    };
    const auto gpus = [](const std::vector<int>& list) {
        return list.empty() ? std::string() : "  # GPU " + joined(list, " ");
    };
    std::string out;
    const auto held = held_nodes(plan);
    if (!plan.vacated_nodes.empty()) out += "  # Nothing may start on the nodes to be vacated.\n";
    for (const auto& node : plan.vacated_nodes) out += "  cordon " + node + "\n";
    if (!held.empty())
        out += plan.vacated_nodes.empty()
                   ? "  # Until all have moved, nothing may start on the nodes from which pods move.\n"
                   : "  # Nor, until all have moved, on those from which pods move.\n";
    for (const auto& node : held) out += "  cordon " + node + "\n";
    for (const auto& task : plan.evictions) out += "  evict " + pod(task) + "\n";
    const auto moves = moves_by_wave(plan);
    for (std::size_t i = 0; i < moves.size(); ++i) {
        const auto& move = *moves[i];
        const auto wave = std::to_string(move.wave);
        out += "  move " + wave + " " + pod(move.task) + " " + move.from + " " + move.to + gpus(move.gpus);
        if (move.how == MoveMode::restart) out += move.gpus.empty() ? "  # restarts" : ", restarts";
        out += "\n";
        if (i + 1 == moves.size() || moves[i + 1]->wave != move.wave) out += "  finish_wave " + wave + "\n";
    }
    for (const auto& node : held) out += "  release " + node + "\n";
    for (const auto& placement : plan.placements)
        out += "  placed " + pod(placement.task) + " " + placement.node + gpus(placement.gpus) + "\n";
    return out.empty() ? "  :\n" : out;
}

}  // namespace detail

GPUSCHED_EXPORT std::string plan_to_kubernetes_steps(const PlanSpec& plan,
                                                     const KubernetesStepsOptions& options) {
    detail::require_kubernetes_names(plan, options.default_namespace);
    const auto counted = [](auto count, const std::string& noun) {
        return concat(count, " ", noun, (count == 1 ? "" : "s"));
    };
    const auto steps = detail::kubernetes_steps(plan, options.default_namespace);
    std::string out = "#!/bin/sh\n# A plan: " + counted(plan.evictions.size(), "eviction") + ", " +
                      counted(plan.moves.size(), "move") + " in " + counted(plan.waves, "wave") + ", " +
                      counted(plan.placements.size(), "placement") + "; vacates " +
                      counted(plan.vacated_nodes.size(), "node") + ".\n";
    out += R"(#
#   sh FILE        carries it out with kubectl; after an interruption, it continues with the next step
#   sh FILE check  changes nothing: are the pods on their nodes, and do disruption budgets allow
#                  their eviction?
#   sh FILE undo   removes the cordons; replacements of evicted pods stay on their nodes
#
)";
    out += plan.moves.empty()
               ? "# Nodes of evicted pods are not cordoned, because the pods that the plan makes room for "
                 "start there: another\n"
                 "# pending pod may start there first.\n"
               : "# Nodes from which pods move are cordoned: nodes to be vacated for good, others "
                 "until all pods have moved.\n";
    out +=
        R"(# Evictions go through the Eviction API. One that a disruption budget refuses (429) is tried
# again. After each wave the script waits until the controllers of the pods have as many ready pods as before.
#
# A stock Kubernetes does not let a plan choose the node of a replacement (kube-scheduler chooses, and may
# start another pending pod first) or its GPUs, nor start it before the old pod ends. The script reports the
# nodes of replacements. It asks before it continues if they differ from the plan. It also asks before it
# begins if most pods are gone or on other nodes, or if a disruption budget allows no eviction of a pod. It
# reads answers from standard input. It ends with status 0, with 1 if it stopped, and with 3 if all pods were
# gone or on other nodes.
#
# GPUSCHED_WAIT_S (600) and GPUSCHED_POLL_S (5): seconds until it gives up, and between two checks.
# GPUSCHED_YES=1: continue for any nodes of replacements. GPUSCHED_BARE_PODS=1: evict pods without a
# controller, too; they are lost. GPUSCHED_STATE (FILE.state): the completed steps. KUBECTL (kubectl): the
# command, such as "kubectl --context prod".
set -eu
)";
    out += "\nplan=" + detail::fingerprint(steps) + "\nnodes='" + detail::joined(plan.vacated_nodes, " ") +
           "'\n";
    out += detail::kubernetes_steps_script;
    return out + "\nsteps() {\n" + steps + "}\n\nmain \"$@\"\n";
}

namespace detail {

/// The class of the devices among these GPUs of the node; if there are none, the class that the task prefers.
static std::string device_class(const TaskSpec& task, const NodeSpec* node, const std::vector<int>& gpus) {
    if (node != nullptr) {
        auto first = node->gpu_count;
        for (const auto& group : node->devices) {
            const auto in_group = [&](int gpu) { return gpu >= first && gpu - first < group.count; };
            if (std::ranges::any_of(gpus, in_group)) return group.device_class;
            first += group.count;
        }
    }
    return task.device_classes.empty() ? std::string() : task.device_classes.front();
}

/// The requests of a reservation, as lines of a resource list.
/// @param devices the class of its devices
static std::string yaml_requests(const TaskSpec& task, const std::string& devices,
                                 const std::string& indent) {
    std::string out = indent + "cpu: " + json_string(std::to_string(task.cpu_milli) + "m") + "\n" + indent +
                      "memory: " + json_string(std::to_string(task.memory_mib) + "Mi") + "\n";
    for (const auto& [name, amount] : task.resources)
        if (name != "pods")  // not a request of a container
            out += indent + json_string(name) + ": " + json_string(std::to_string(amount)) + "\n";
    if (task.device_count > 0)
        out += indent + json_string(devices) + ": " + json_string(std::to_string(task.device_count)) + "\n";
    if (task.gpu_count == 0) return out;
    if (task.gpu_share_milli == whole_gpu_milli)
        return out + indent + "nvidia.com/gpu: " + json_string(std::to_string(task.gpu_count)) + "\n";
    const auto percent = json_string(std::to_string((task.gpu_share_milli + 9) / 10));
    return out + indent + "koordinator.sh/gpu-core: " + percent + "\n" + indent +
           "koordinator.sh/gpu-memory-ratio: " + percent + "\n";
}

static std::string yaml_tolerations(const TaskSpec& task, const std::string& indent) {
    if (task.tolerations.empty()) return {};
    std::string out = indent + "tolerations:\n";
    for (const auto& toleration : task.tolerations) {
        out += indent + "- operator: " + json_string(toleration.op) + "\n";
        if (!toleration.key.empty()) out += indent + "  key: " + json_string(toleration.key) + "\n";
        if (!toleration.value.empty()) out += indent + "  value: " + json_string(toleration.value) + "\n";
        if (!toleration.effect.empty()) out += indent + "  effect: " + json_string(toleration.effect) + "\n";
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
        problems.add(bad_value("name_prefix", detail::in_quotes(options.name_prefix),
                               "a Kubernetes name of at most 200 characters"));
    if (!detail::is_kubernetes_name(options.scheduler_name))
        problems.add(
            bad_value("scheduler_name", detail::in_quotes(options.scheduler_name), "a Kubernetes name"));
    check_fields(problems, options);
    for (const auto& move : plan.moves)
        if (!tasks.contains(move.task)) problems.add("unknown task " + detail::in_quotes(move.task));
    problems.throw_if_any();
    detail::require_kubernetes_names(plan, options.default_namespace);

    std::string out;
    if (!plan.vacated_nodes.empty())
        out += "# First, so that nothing else starts on the nodes to be vacated:\n";
    for (const auto& node : plan.vacated_nodes) out += "# kubectl cordon " + node + "\n";
    const auto begin = [&](const std::string& step, std::size_t number, const std::string& wave) {
        out += "---\napiVersion: scheduling.koordinator.sh/v1alpha1\nkind: PodMigrationJob\nmetadata:\n  "
               "name: " +
               detail::json_string(concat(options.name_prefix, "-", step, "-", number)) +
               "\n  labels:\n    gpusched/wave: " + detail::json_string(wave) + "\n";
    };
    const auto spec = [&](const std::string& task, bool paused, const char* mode) {
        const auto pod = detail::pod_name(task, options.default_namespace);
        out += std::string("spec:\n  paused: ") + (paused ? "true" : "false") +
               "\n  ttl: " + detail::json_string(std::to_string(options.ttl_s) + "s") + "\n  mode: " + mode +
               "\n  podRef:\n    namespace: " + detail::json_string(pod.space) +
               "\n    name: " + detail::json_string(pod.name) + "\n";
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
        out += "  annotations:\n    gpusched/from: " + detail::json_string(move->from) +
               "\n    gpusched/to: " + detail::json_string(move->to) +
               "\n    gpusched/gpus: " + detail::json_string(detail::joined(move->gpus, " ")) + "\n";
        if (move->how != MoveMode::copy)
            out += "    gpusched/how: " + detail::json_string(enum_name(move->how)) + "\n";
        if (move->chain)
            out += "    gpusched/chain: " + detail::json_string(std::to_string(*move->chain)) + "\n";
        if (!move->serves.empty()) out += "    gpusched/for: " + detail::json_string(move->serves) + "\n";
        spec(move->task, move->wave > 0 || !plan.evictions.empty(), "ReservationFirst");
        const std::string indent(12, ' ');
        out += "  reservationOptions:\n    template:\n      spec:\n        template:\n          spec:\n" +
               indent + "schedulerName: " + detail::json_string(options.scheduler_name) + "\n" + indent +
               "containers:\n" + indent + "- name: reserved\n" + indent + "  resources:\n" + indent +
               "    requests:\n" +
               detail::yaml_requests(task, detail::device_class(task, find_node(move->to), move->gpus),
                                     indent + "      ") +
               detail::yaml_tolerations(task, indent) + indent + "affinity:\n" + indent +
               "  nodeAffinity:\n" + indent + "    requiredDuringSchedulingIgnoredDuringExecution:\n" +
               indent + "      nodeSelectorTerms:\n" + indent + "      - matchFields:\n" + indent +
               "        - key: metadata.name\n" + indent + "          operator: In\n" + indent +
               "          values: [" + detail::json_string(move->to) + "]\n";
    }
    if (!plan.placements.empty()) out += "# Pending pods that now fit:\n";
    for (const auto& placement : plan.placements)
        out += "# " + placement.task + " -> " + placement.node +
               (placement.gpus.empty() ? "" : ", GPU " + detail::joined(placement.gpus, " ")) + "\n";
    return out;
}

}  // namespace gpusched::io
