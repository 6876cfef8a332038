// SPDX-License-Identifier: Apache-2.0
// Writes plans as CSV, as scripts for kubectl and scontrol, and as PodMigrationJobs.
#include "io/documents.hpp"
#include "io/steps_scripts.hpp"  // made of kubernetes_steps.sh and slurm_steps.sh by CMake

#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/io/plan_export.hpp>
#include <gpusched/model/disturbance.hpp>
#include <gpusched/model/plan.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <functional>
#include <map>
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

/// The steps as the shell functions read them, one per line.
static std::string kubernetes_steps(const PlanSpec& plan, std::string_view default_namespace) {
    // Names hold lower-case letters, digits, '-' and '.' only, so that nothing needs quoting below.
    std::string out;
    const auto pod = [&](const std::string& task) {
        const auto name = pod_name(task, default_namespace);
        return concat(name.space, "/", name.name);
    };
    for (const auto& node : plan.vacated_nodes) out += "V|" + node + "\n";
    for (const auto& node : held_nodes(plan)) out += "H|" + node + "\n";
    for (const auto& task : plan.evictions) out += "E|" + pod(task) + "\n";
    for (const auto* move : moves_by_wave(plan))
        out += concat("M|", pod(move->task), "|", move->from, "|", move->to, "|wave ", move->wave + 1,
                      move->gpus.empty() ? "" : ", GPU " + joined(move->gpus, " "), "\n");
    const std::set<std::string_view> evicted(plan.evictions.begin(), plan.evictions.end());
    for (const auto& placement : plan.placements)  // the replacement of an evicted pod has another name
        if (!evicted.contains(placement.task))
            out += "W|" + pod(placement.task) + "|" + placement.node + "\n";
    return out;
}

/// "1 node", "2 nodes".
static std::string counted(std::size_t count, std::string_view noun) {
    return concat(count, " ", noun, count == 1 ? "" : "s");
}

/// The first line of a script, after "#!/bin/sh".
static std::string summary_line(const PlanSpec& plan) {
    return "# A plan: " + counted(plan.evictions.size(), "eviction") + ", " +
           counted(plan.moves.size(), "move") + " in " +
           counted(static_cast<std::size_t>(plan.waves), "wave") + ", " +
           counted(plan.placements.size(), "placement") + "; vacates " +
           counted(plan.vacated_nodes.size(), "node") + ".\n";
}

/// The end of a script: its steps, the shell functions, the call.
static std::string script_end(const std::string& steps, std::string_view functions) {
    return concat("set -eu\n\nplan=", fingerprint(steps), "\nsteps='\n", steps, "'\n", functions,
                  "\nmain \"$@\"\n");
}

}  // namespace detail

GPUSCHED_EXPORT std::string plan_to_kubernetes_steps(const PlanSpec& plan,
                                                     const KubernetesStepsOptions& options) {
    detail::require_kubernetes_names(plan, options.default_namespace);
    const auto steps = detail::kubernetes_steps(plan, options.default_namespace);
    return "#!/bin/sh\n" + detail::summary_line(plan) + R"(#
#   sh FILE               carries it out with kubectl; started again, it goes on
#   sh FILE check         changes nothing: what differs from the plan, and which disruption budgets refuse
#   sh FILE skip NODE...  goes on without these nodes
#   sh FILE undo          removes the cordons, undo NODE... those of some nodes; evicted pods do not move back
#
# The script cordons the nodes to be vacated and marks them, asks for approval, and evicts their pods
# through the Eviction API, largest first, a few at a time. Pods that started there since leave as well if a
# ReplicaSet or StatefulSet replaces them and they have no local data. It evicts a pod only if an open node
# has room for it now, and waits until replacements have started. A node is uncordoned and left out if its
# pods have no room or a disruption budget refuses their eviction. kube-scheduler chooses the nodes and GPUs
# of replacements: they may differ from the plan. All state is in the cluster: the annotation gpusched/plan
# of nodes and the Lease gpusched, which lets one copy run at a time.
#
# Status: 0 the plan is carried out, 1 stopped or nothing vacated, 2 wrong arguments, 3 carried out in part
# (or: check found differences).
#
# GPUSCHED_YES=1: does not ask; it goes on, but leaves out nodes with other pods that are not in the plan,
# or that would be lost. GPUSCHED_BARE_PODS=1: evicts pods without a controller, too; they are lost.
# GPUSCHED_WAIT_S (600) and GPUSCHED_POLL_S (5): seconds without progress until it gives up, and between two
# looks. GPUSCHED_AT_ONCE (5): evictions at a time. GPUSCHED_LEASE_S (60): after this time another copy may
# take the lock of one that died. GPUSCHED_NAMESPACE (default): of the Lease. KUBECTL (kubectl): the
# command, such as "kubectl --context prod".
)" + detail::script_end(steps, detail::kubernetes_steps_script);
}

namespace detail {

/// The id of a task's Slurm job: "17" of "17/0", "30" of "30+1/0", "20_4".
static std::string slurm_job(std::string_view task) {
    return std::string(task.substr(0, task.find_first_of("+/")));
}

static bool is_slurm_job(std::string_view id) {
    const auto digits = [](std::string_view part) {
        return !part.empty() && part.find_first_not_of("0123456789") == part.npos;
    };
    const auto split = id.find('_');
    return digits(id.substr(0, split)) && (split == id.npos || digits(id.substr(split + 1)));
}

static bool is_slurm_node(std::string_view name) {
    return !name.empty() && name.front() != '-' &&
           name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") ==
               name.npos;
}

/// The running tasks of a job that a plan disturbs.
struct SlurmJob {
    std::set<std::string> nodes{}, changed{};  ///< of its tasks; tasks that the plan moves or evicts
    std::size_t running = 0;                   ///< tasks
    std::int64_t gpus = 0;
    bool requeues = true, moves = false, evicted = false, twice = false, heterogeneous = false;
};

/// @throws InvalidInput naming every job that Slurm could not treat as the plan says
static std::map<std::string, SlurmJob> slurm_jobs(const PlanSpec& plan, const ClusterSpec& cluster) {
    Problems problems;
    std::map<std::string, SlurmJob> jobs;
    const auto change = [&](const std::string& task, bool SlurmJob::*how) {
        auto& job = jobs[slurm_job(task)];
        job.twice = !job.changed.insert(task).second || job.twice;
        job.*how = true;
    };
    for (const auto& task : plan.evictions) change(task, &SlurmJob::evicted);
    for (const auto& move : plan.moves) change(move.task, &SlurmJob::moves);
    std::set<std::string_view> known;
    for (const auto& task : cluster.tasks) {
        known.insert(task.name);
        const auto found = jobs.find(slurm_job(task.name));
        if (found == jobs.end() || !task.node) continue;
        auto& job = found->second;
        job.nodes.insert(*task.node);
        ++job.running;
        job.gpus += task.gpu_count + task.device_count;
        job.heterogeneous = job.heterogeneous || task.name.find('+') != task.name.npos;
        job.requeues = job.requeues && task.how == Mobility::restart && !task.locked;
    }
    const auto node = [&](const std::string& name) {
        if (!is_slurm_node(name))
            problems.add("node " + in_quotes(name) + ": expected a name of a Slurm node");
    };
    for (const auto& name : plan.vacated_nodes) node(name);
    std::set<std::string> exempt;  // the nodes of jobs that move in part
    for (const auto& [id, job] : jobs) {
        for (const auto& task : job.changed)
            if (!known.contains(task)) problems.add("unknown task " + in_quotes(task));
        for (const auto& name : job.nodes) node(name);
        if (!is_slurm_job(id))
            problems.add("task " + in_quotes(*job.changed.begin()) +
                         ": expected a task of a Slurm job, such as 17, 17/0 or 20_4");
        else if (job.heterogeneous)
            problems.add("job " + in_quotes(id) +
                         " is heterogeneous; the script requeues jobs of one component only");
        else if (!job.requeues)
            problems.add("job " + in_quotes(id) + " cannot be requeued");
        else if (job.twice || (job.moves && job.evicted))
            problems.add("job " + in_quotes(id) + " would be requeued more than once");
        else if (job.changed.size() < job.running) {
            problems.add("job " + in_quotes(id) + ": the plan moves " + std::to_string(job.changed.size()) +
                         " of its " + std::to_string(job.running) +
                         " tasks, but Slurm requeues whole jobs only");
            exempt.insert(job.nodes.begin(), job.nodes.end());
        }
    }
    if (!exempt.empty())
        problems.add("to keep the jobs in place that move in part, plan again with --exempt " +
                     joined(exempt, ","));
    for (const auto& placement : plan.placements)
        if (!is_slurm_job(slurm_job(placement.task)))
            problems.add("task " + in_quotes(placement.task) +
                         ": expected a task of a Slurm job, such as 17, 17/0 or 20_4");
    problems.throw_if_any();
    return jobs;
}

}  // namespace detail

GPUSCHED_EXPORT std::string plan_to_slurm_steps(const PlanSpec& plan, const ClusterSpec& cluster) {
    const auto jobs = detail::slurm_jobs(plan, cluster);
    std::string steps;
    for (const auto& node : plan.vacated_nodes) steps += "V|" + node + "\n";
    for (const auto& node : detail::held_nodes(plan)) steps += "H|" + node + "\n";
    std::vector<const std::pair<const std::string, detail::SlurmJob>*> by_size;
    for (const auto& job : jobs) by_size.push_back(&job);
    std::ranges::stable_sort(by_size, std::greater{}, [](const auto* job) { return job->second.gpus; });
    for (const auto* job : by_size)
        steps += (job->second.evicted ? "E|" : "M|") + job->first + "|" +
                 detail::joined(job->second.nodes, ",") + "\n";
    std::set<std::string> placed;
    for (const auto& placement : plan.placements) placed.insert(detail::slurm_job(placement.task));
    for (const auto& [evicted, _] : jobs) placed.erase(evicted);  // it is released in the end
    for (const auto& job : placed) steps += "W|" + job + "\n";
    return "#!/bin/sh\n" + detail::summary_line(plan) + R"(#
#   sh FILE        carries it out with scontrol; started again, it goes on
#   sh FILE undo   opens the nodes and releases held jobs; requeued jobs are not moved back
#
# The script drains the nodes to be vacated, asks for approval, and then requeues whole jobs, largest first,
# one at a time: it requeues a job on hold, releases it, and waits until it runs again. Slurm chooses the
# nodes and the time. It leaves alone a job that no longer runs where the plan takes it from. A node with a
# job that is not in the plan, that cannot be requeued, or that found no other place, is resumed and left
# out. If no job is pending any more that the plan makes room for, it requeues nothing. Drained nodes carry
# the plan in their Reason, held jobs at the end of their AdminComment until they are released.
#
# Status: 0 the plan is carried out, 1 stopped or nothing vacated, 2 wrong arguments, 3 carried out in part.
#
# GPUSCHED_YES=1: does not ask. GPUSCHED_WAIT_S (900) and GPUSCHED_POLL_S (5): seconds until it gives up on a
# job, and between two looks. SCONTROL (scontrol) and SQUEUE (squeue): the commands.
)" + detail::script_end(steps, detail::slurm_steps_script);
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

/// A line of YAML with a text as value; the key includes the indent.
static std::string yaml_line(std::string_view key, std::string_view value) {
    return concat(key, ": ", json_string(value), "\n");
}

/// The requests of a reservation, as lines of a resource list.
/// @param devices the class of its devices
static std::string yaml_requests(const TaskSpec& task, const std::string& devices,
                                 const std::string& indent) {
    std::string out = yaml_line(indent + "cpu", std::to_string(task.cpu_milli) + "m") +
                      yaml_line(indent + "memory", std::to_string(task.memory_mib) + "Mi");
    for (const auto& [name, amount] : task.resources)
        if (name != "pods")  // not a request of a container
            out += yaml_line(indent + json_string(name), std::to_string(amount));
    if (task.device_count > 0)
        out += yaml_line(indent + json_string(devices), std::to_string(task.device_count));
    if (task.gpu_count == 0) return out;
    if (task.gpu_share_milli == whole_gpu_milli)
        return out + yaml_line(indent + "nvidia.com/gpu", std::to_string(task.gpu_count));
    const auto percent = std::to_string((task.gpu_share_milli + 9) / 10);
    return out + yaml_line(indent + "koordinator.sh/gpu-core", percent) +
           yaml_line(indent + "koordinator.sh/gpu-memory-ratio", percent);
}

static std::string yaml_tolerations(const TaskSpec& task, const std::string& indent) {
    if (task.tolerations.empty()) return {};
    std::string out = indent + "tolerations:\n";
    for (const auto& toleration : task.tolerations) {
        out += yaml_line(indent + "- operator", toleration.op);
        if (!toleration.key.empty()) out += yaml_line(indent + "  key", toleration.key);
        if (!toleration.value.empty()) out += yaml_line(indent + "  value", toleration.value);
        if (!toleration.effect.empty()) out += yaml_line(indent + "  effect", toleration.effect);
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
        out += "---\napiVersion: scheduling.koordinator.sh/v1alpha1\nkind: PodMigrationJob\nmetadata:\n" +
               detail::yaml_line("  name", concat(options.name_prefix, "-", step, "-", number)) +
               "  labels:\n" + detail::yaml_line("    gpusched/wave", wave);
    };
    const auto spec = [&](const std::string& task, bool paused, const char* mode) {
        const auto pod = detail::pod_name(task, options.default_namespace);
        out += concat("spec:\n  paused: ", paused ? "true" : "false", "\n",
                      detail::yaml_line("  ttl", std::to_string(options.ttl_s) + "s"), "  mode: ", mode,
                      "\n  podRef:\n", detail::yaml_line("    namespace", pod.space),
                      detail::yaml_line("    name", pod.name));
    };
    std::size_t number = 1;
    for (const auto& task : plan.evictions) {
        begin("evict", number++, "evictions");
        spec(task, false, "EvictDirectly");
    }
    number = 1;
    for (const auto* move : detail::moves_by_wave(plan)) {
        const auto& task = *tasks.at(move->task);
        const auto wave = std::to_string(move->wave + 1);
        begin("wave-" + wave, number++, wave);
        out += "  annotations:\n" + detail::yaml_line("    gpusched/from", move->from) +
               detail::yaml_line("    gpusched/to", move->to) +
               detail::yaml_line("    gpusched/gpus", detail::joined(move->gpus, " "));
        if (move->how != MoveMode::copy) out += detail::yaml_line("    gpusched/how", enum_name(move->how));
        if (move->chain) out += detail::yaml_line("    gpusched/chain", std::to_string(*move->chain));
        if (!move->serves.empty()) out += detail::yaml_line("    gpusched/for", move->serves);
        spec(move->task, move->wave > 0 || !plan.evictions.empty(), "ReservationFirst");
        const std::string indent(12, ' ');
        out += R"(  reservationOptions:
    template:
      spec:
        template:
          spec:
)" + detail::yaml_line(indent + "schedulerName", options.scheduler_name) +
               R"(            containers:
            - name: reserved
              resources:
                requests:
)" +
               detail::yaml_requests(task, detail::device_class(task, find_node(move->to), move->gpus),
                                     indent + "      ") +
               detail::yaml_tolerations(task, indent) + R"(            affinity:
              nodeAffinity:
                requiredDuringSchedulingIgnoredDuringExecution:
                  nodeSelectorTerms:
                  - matchFields:
                    - key: metadata.name
                      operator: In
                      values: [)" +
               detail::json_string(move->to) + "]\n";
    }
    if (!plan.placements.empty()) out += "# Pending pods that now fit:\n";
    for (const auto& placement : plan.placements)
        out += "# " + placement.task + " -> " + placement.node +
               (placement.gpus.empty() ? "" : ", GPU " + detail::joined(placement.gpus, " ")) + "\n";
    return out;
}

}  // namespace gpusched::io
