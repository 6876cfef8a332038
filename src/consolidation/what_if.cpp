// SPDX-License-Identifier: Apache-2.0
// Changes a copy of the cluster and lets its pending jobs start in the order of the queue.
#include "allocation/gang.hpp"
#include "allocation/tally.hpp"
#include "consolidation/checks.hpp"
#include "model/node_match.hpp"
#include "model/pod_room.hpp"

#include <gpusched/allocation/allocate.hpp>
#include <gpusched/config.hpp>
#include <gpusched/consolidation/consolidate.hpp>
#include <gpusched/consolidation/what_if.hpp>
#include <gpusched/core/errors.hpp>
#include <gpusched/core/order.hpp>
#include <gpusched/model/waiting.hpp>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <string_view>
#include <tuple>
#include <unordered_set>
#include <utility>

namespace gpusched::consolidation {

namespace detail {

/// A job, or a task without a job, with its pending pods.
struct QueuedJob {
    std::string name;
    bool is_job = false;  // jobs and tasks may share a name
    std::int64_t priority = std::numeric_limits<std::int64_t>::min();
    std::int64_t created = std::numeric_limits<std::int64_t>::max();
    std::vector<TaskId> pods;  // those that it needs come first
    std::size_t needed = 0;    // of the pods
    bool has_subgroups = false;
    bool one_by_one = false;  // each pod starts as soon as it has a place
    bool is_gang = false;     // none starts without those that it needs
};

/// Returns the jobs that wait, highest priority first, then the oldest, then by name.
static std::vector<QueuedJob> queue(const Cluster& cluster) {
    const auto& inv = cluster.inventory();
    const auto& t = inv.tasks;
    std::map<std::pair<bool, std::string_view>, QueuedJob> jobs;
    std::vector<std::int64_t> running(inv.job_names.size());
    std::vector<std::int64_t> running_in(inv.subgroups.size());
    for (const auto task : cluster.tasks()) {
        const auto job = t.job[index(task)];
        if (cluster.is_placed(task)) {
            if (job != none<JobId>) ++running[index(job)];
            if (const auto in = inv.subgroup_of(task); in != none<SubgroupId>) ++running_in[index(in)];
            continue;
        }
        // The node of a daemon does not exist yet, and a task that is being deleted does not come back.
        if (t.daemon[index(task)] || inv.terminating.contains(task)) continue;
        const auto& name = job == none<JobId> ? cluster.name(task) : inv.job_names[index(job)];
        auto& queued = jobs[{job != none<JobId>, name}];
        queued.name = name;
        queued.is_job = job != none<JobId>;
        queued.priority = std::max(queued.priority, t.priority[index(task)]);
        queued.created = std::min(queued.created, t.start_time[index(task)]);
        queued.pods.push_back(task);
    }
    std::vector<QueuedJob> list;
    for (auto& [key, queued] : jobs) {
        // Pods that wait for something else are left out if the others can start without them.
        std::vector<TaskId> ready;
        for (const auto pod : queued.pods)
            if (!inv.waiting.contains(pod)) ready.push_back(pod);
        if (!ready.empty() && !find_waiting(cluster, ready)) queued.pods = std::move(ready);
        queued.needed = queued.pods.size();
        const auto job = t.job[index(queued.pods.front())];
        const auto least = job == none<JobId> ? 0 : inv.job_min_members[index(job)];
        queued.one_by_one = least == 1;
        queued.is_gang = least > 1;
        if (queued.is_gang) {
            const auto lacks = std::max<std::int64_t>(1, least - running[index(job)]);
            queued.needed = std::min(queued.pods.size(), static_cast<std::size_t>(lacks));
            queued.has_subgroups = !inv.subgroups_of(job).empty();
            // The smallest come first, and before them the members that subgroups need.
            std::sort(queued.pods.begin(), queued.pods.end(), [&](TaskId a, TaskId b) {
                const auto size = [&](TaskId pod) {
                    return std::tuple(cluster.gpu_milli(pod), t.cpu_milli[index(pod)],
                                      t.memory_mib[index(pod)], std::string_view(cluster.name(pod)));
                };
                return size(a) < size(b);
            });
            std::vector<TaskId> first, others;
            for (const auto pod : queued.pods) {
                const auto in = inv.subgroup_of(pod);
                const bool needed =
                    in != none<SubgroupId> && running_in[index(in)]++ < inv.subgroups[index(in)].min_members;
                (needed ? first : others).push_back(pod);
            }
            first.insert(first.end(), others.begin(), others.end());
            queued.pods = std::move(first);
        }
        list.push_back(std::move(queued));
    }
    std::stable_sort(list.begin(), list.end(), [](const QueuedJob& a, const QueuedJob& b) {
        if (a.priority != b.priority) return a.priority > b.priority;
        return a.created != b.created ? a.created < b.created : comes_before(a.name, b.name);
    });
    return list;
}

/// Lets jobs start in a copy of a cluster.
class Starter {
  public:
    Starter(Cluster cluster, const Context& context) : cluster_(std::move(cluster)), context_(context) {
        cluster_.commit();
    }

    /// Places all pods of the job, or else those that it needs and as many others as fit, or none. Pods of a job
    /// without a gang are placed in any case, but it starts with all of them only.
    JobOutcome start(const QueuedJob& job) {
        JobOutcome outcome;
        const std::span all(job.pods);
        auto placed = place(all);
        auto count = placed.placed ? all.size() : 0;
        if (!placed.placed && (job.needed < all.size() || job.one_by_one)) {
            const auto mark = cluster_.checkpoint();
            const bool together = !job.one_by_one && place(all.first(job.needed)).placed;
            if (together) count = job.needed;
            // Without subgroups, any pods will do.
            if (together || !job.has_subgroups)
                for (const auto pod : all.subspan(together ? job.needed : 0))
                    if (place(std::span(&pod, 1)).placed) ++count;
            if (count < job.needed && !job.one_by_one) {
                cluster_.rollback(mark);
                count = 0;
            }
        }
        outcome.starts = count >= job.needed;
        outcome.pods = static_cast<std::int64_t>(count);
        if (!outcome.starts) outcome.reason = std::move(placed.reason);
        return outcome;
    }
    bool starts_alone(const QueuedJob& job) {
        const auto mark = cluster_.checkpoint();
        const bool starts = start(job).starts;
        cluster_.rollback(mark);
        return starts;
    }
    [[nodiscard]] const Cluster& cluster() const noexcept { return cluster_; }

  private:
    allocation::Allocation place(std::span<const TaskId> pods) {
        return allocation::place_gang(cluster_, pods, {}, context_);
    }
    Cluster cluster_;
    const Context& context_;
};

/// The cluster with open nodes, and without the tasks that are neither locked nor daemons, or that are being deleted.
static Cluster emptied(const Cluster& cluster) {
    const auto& inv = cluster.inventory();
    const auto stays = [&](TaskId task) {
        return !inv.terminating.contains(task) &&
               (inv.tasks.locked[index(task)] != 0 || inv.tasks.daemon[index(task)] != 0);
    };
    auto out = cluster;
    out.commit();
    for (const auto node : cluster.nodes()) {
        auto spec = cluster.node_spec(node);
        const auto state_taints = std::erase_if(spec.taints, gpusched::detail::is_state);
        if (spec.schedulable && state_taints == 0) continue;
        spec.schedulable = true;
        out.update_node(out.handle(node), spec);
    }
    for (const auto task : cluster.tasks())
        if (cluster.is_placed(task) && !stays(task)) out.remove(task);
    return out;
}

/// True if too few pods of the job fit on the emptied nodes, of each kind alone. Ignores group constraints.
static bool lacks_room(const Cluster& emptied, const QueuedJob& job) {
    const auto& t = emptied.inventory().tasks;
    const auto kind = [&](TaskId pod) {
        const auto i = index(pod);
        return std::tuple(t.requirement[i], t.gpu_count[i], t.gpu_share_milli[i], t.gpu_memory_mib[i],
                          t.cpu_milli[i], t.memory_mib[i], t.extras[i], t.affinities[i]);
    };
    std::map<decltype(kind(TaskId{})), std::size_t> of_kind;
    for (const auto pod : job.pods) ++of_kind[kind(pod)];
    std::size_t hold = 0;
    for (const auto pod : job.pods) {
        const auto count = std::exchange(of_kind[kind(pod)], 0);
        std::int64_t room = 0;
        if (count > 0)
            for (const auto node : emptied.nodes())
                room +=
                    gpusched::detail::pod_room(emptied, pod, node, static_cast<std::int64_t>(count) - room);
        hold += static_cast<std::size_t>(room);
    }
    return hold < job.needed;
}

/// True if the job starts with all its pods only, and their groups need no other task, running or pending.
/// Then it must find a place on the emptied nodes.
static bool must_fit(const Cluster& cluster, const QueuedJob& job) {
    const auto& inv = cluster.inventory();
    const auto is_pending = [&](std::uint32_t set) {  // a member that is not of the job
        const auto tasks = cluster.tasks();
        return std::any_of(tasks.begin(), tasks.end(), [&](TaskId task) {
            const auto of = inv.selection_memberships(task);
            return std::find(job.pods.begin(), job.pods.end(), task) == job.pods.end() &&
                   std::any_of(of.begin(), of.end(),
                               [&](const Membership& m) { return m.set == set && m.is_member(); });
        });
    };
    bool grouped = false;
    for (const auto pod : job.pods) {
        grouped =
            grouped || !inv.affinity_memberships(pod).empty() || !inv.anti_affinity_memberships(pod).empty();
        for (const auto& m : inv.selection_memberships(pod)) {
            grouped = true;
            const auto kind = inv.group_sets[m.set].kind;
            if (m.is_bound() && kind != GroupKind::avoid &&
                (cluster.group_domains(m.set) > 0 || (kind == GroupKind::near && is_pending(m.set))))
                return false;
        }
    }
    return grouped && job.needed == job.pods.size();
}

/// Says why too many pods of the job can use no node, whatever runs there; empty if they are few enough.
static std::string why_unusable(const Cluster& cluster, const QueuedJob& job) {
    const auto& inv = cluster.inventory();
    const std::vector<NodeId> nodes(cluster.nodes().begin(), cluster.nodes().end());
    std::map<decltype(allocation::detail::shape_of(inv, TaskId{})), std::vector<TaskId>> of_shape;
    for (const auto pod : job.pods) of_shape[allocation::detail::shape_of(inv, pod)].push_back(pod);
    auto usable = job.pods.size();
    auto sample = none<TaskId>;
    for (const auto& [shape, pods] : of_shape) {
        const allocation::Refusals refusals(cluster, pods.front());
        if (std::any_of(nodes.begin(), nodes.end(), [&](NodeId node) { return refusals.in_pool(node); }))
            continue;
        usable -= pods.size();
        if (sample == none<TaskId>) sample = pods.front();
    }
    if (usable >= job.needed) return {};
    return allocation::detail::Tally(cluster, sample, nodes).describe_unusable(nodes).text;
}

/// Says why the emptied nodes cannot hold the job; empty if that is not proven.
static std::string why_impossible(const Cluster& cluster, const Cluster& emptied, const QueuedJob& job,
                                  const Context& context) {
    if (!lacks_room(emptied, job)) {
        if (!must_fit(cluster, job)) return {};
        auto copy = emptied;
        copy.commit();
        const allocation::AllocateOptions options;
        const allocation::detail::Gang gang(copy, job.pods, options, nullptr);
        if (gang.packs(Obstacle::none) != allocation::detail::Packed::no) return {};
    }
    if (const auto text = why_unusable(cluster, job); !text.empty()) return "impossible: " + text;
    return "impossible: " + allocation::allocate(emptied, job.pods, {}, context).reason;
}

/// A controller creates the task again, even if nothing may disturb it. Slurm requeues only jobs that may move.
static bool has_controller(const TaskSpec& task) {
    const auto kind = task.owner_kind.value_or("");
    return !kind.empty() && kind != gpusched::detail::slurm_job;
}

static bool is_lost(const TaskSpec& task) {
    return task.locked || task.standby || (task.how == Mobility::none && !has_controller(task));
}

static ClusterSpec changed(const Cluster& cluster, const WhatIfOptions& options,
                           std::vector<std::string>& lost) {
    auto spec = cluster.to_spec();
    std::unordered_set<std::string> removed, uncordoned, gone, names;
    for (const auto node : options.remove) removed.insert(cluster.name(node));
    for (const auto node : options.uncordon) uncordoned.insert(cluster.name(node));
    std::erase_if(spec.nodes, [&](const NodeSpec& node) { return removed.contains(node.name); });
    for (auto& node : spec.nodes) {
        names.insert(node.name);
        if (!uncordoned.contains(node.name)) continue;
        node.schedulable = true;
        std::erase_if(node.taints,
                      [](const Taint& taint) { return taint.key == gpusched::detail::cordon_taint; });
    }
    // Displaced tasks wait from now on, after all others of their priority.
    std::int64_t now = 0;
    for (const auto& task : spec.tasks) now = std::max(now, task.start_time);
    if (now < std::numeric_limits<std::int64_t>::max()) ++now;
    std::erase_if(spec.tasks, [&](TaskSpec& task) {
        if (!task.node || !removed.contains(*task.node)) return false;
        if (task.daemon || is_lost(task)) {
            if (!task.daemon) lost.push_back(task.name);
            gone.insert(task.name);
            return true;
        }
        task.node.reset();
        task.gpus.clear();
        task.start_time = now;
        return false;
    });
    for (auto& budget : spec.budgets)
        std::erase_if(budget.tasks, [&](const std::string& task) { return gone.contains(task); });
    for (const auto& added : options.add_nodes) {
        std::int64_t number = 0;
        for (std::int64_t i = 0; i < added.count; ++i) {
            auto node = added.node;
            do node.name = added.node.name + "-new-" + std::to_string(++number);
            while (!names.insert(node.name).second);
            for (auto& [key, value] : node.labels)
                if (value == added.node.name) value = node.name;
            for (auto daemon : added.daemons) {
                daemon.name += "@" + node.name;
                daemon.node = node.name;
                spec.tasks.push_back(std::move(daemon));
            }
            spec.nodes.push_back(std::move(node));
        }
    }
    return spec;
}

static void validate_what_if(const WhatIfOptions& options, const Cluster& cluster) {
    Problems problems;
    check_fields(problems, options);
    check_nodes(problems, "remove", cluster, options.remove);
    check_nodes(problems, "uncordon", cluster, options.uncordon);
    problems.throw_if_any();
    for (const auto node : options.uncordon) {
        const auto& inv = cluster.inventory();
        const bool not_ready =
            gpusched::detail::is_not_ready(inv.node_classes[inv.nodes.node_class[index(node)]].taints);
        if (!inv.nodes.is_cordoned(node) || not_ready)
            problems.add(bad_value("uncordon", gpusched::quoted(cluster.name(node)),
                                   concat("a ", words_of(inv).closed, " node")) +
                         (not_ready ? "; this one is not ready, and would stay closed" : ""));
        if (std::find(options.remove.begin(), options.remove.end(), node) != options.remove.end())
            problems.add(
                bad_value("uncordon", gpusched::quoted(cluster.name(node)), "a node that is not removed"));
    }
    for (const auto& added : options.add_nodes) {
        check_range(problems, "count", added.count, 1, most_added_nodes, "add_nodes");
        if (added.node.name.empty()) problems.add("add_nodes: a node has no name; expected one");
    }
    problems.throw_if_any();
}

static WhatIfCase describe(const Cluster& cluster, WhatIfState state,
                           std::span<const fragmentation::Shape> shapes) {
    WhatIfCase out;
    out.state = state;
    for (const auto node : cluster.nodes()) {
        if (cluster.inventory().nodes.is_cordoned(node) || cluster.gpu_count(node) == 0) continue;
        out.idle_gpus += gpu_count(cluster.idle_gpus(node));
        out.empty_nodes += cluster.occupants(node) == 0 ? 1 : 0;
    }
    out.fragmentation = fragmentation::report(cluster, shapes);
    return out;
}

}  // namespace detail

GPUSCHED_EXPORT std::vector<EarlierJob>
earlier_in_queue(const Cluster& cluster, std::span<const Placement> pods, const Context& context) {
    const auto& inv = cluster.inventory();
    std::set<std::pair<bool, std::string_view>> ours;
    std::set<NodeId> nodes;
    for (const auto& pod : pods) {
        const auto job = inv.tasks.job[index(pod.task)];
        ours.emplace(job != none<JobId>,
                     job == none<JobId> ? cluster.name(pod.task) : inv.job_names[index(job)]);
        nodes.insert(pod.node);
    }
    std::vector<EarlierJob> found;
    for (const auto& job : detail::queue(cluster)) {
        if (ours.empty()) break;
        if (ours.erase({job.is_job, job.name}) > 0 || find_waiting(cluster, job.pods)) continue;
        const auto fit = std::count_if(job.pods.begin(), job.pods.end(), [&](TaskId pod) {
            return std::any_of(nodes.begin(), nodes.end(), [&](NodeId node) {
                return find_obstacle(cluster, pod, node) == Obstacle::none;
            });
        });
        if (fit == 0) continue;
        // A gang that cannot start takes nothing.
        if (job.is_gang &&
            !allocation::allocate(cluster, std::span(job.pods).first(job.needed), {}, context).placed)
            continue;
        found.push_back({job.name, fit});
    }
    return found;
}

GPUSCHED_EXPORT AddedNodes nodes_like(const Cluster& cluster, NodeId node, std::int64_t count) {
    detail::require_node(cluster, node);
    AddedNodes added{.node = cluster.node_spec(node), .count = count, .daemons = {}};
    added.node.schedulable = true;
    added.node.failed_gpus.clear();
    added.node.eviction_count = 0;
    // Kubernetes taints nodes that are cordoned or not ready.
    std::erase_if(added.node.taints,
                  [](const Taint& taint) { return taint.key.starts_with("node.kubernetes.io/"); });
    for (const auto task : cluster.tasks_on(node))
        if (cluster.inventory().tasks.daemon[index(task)]) added.daemons.push_back(cluster.task_spec(task));
    return added;
}

GPUSCHED_EXPORT WhatIf what_if(const Cluster& cluster, const WhatIfOptions& options, const Context& context) {
    detail::validate_what_if(options, cluster);
    Budget budget(context, options.time_limit);
    auto inner = context;
    inner.progress = {};
    WhatIf result;
    const auto shapes = fragmentation::own_shapes(cluster);
    std::vector<std::pair<WhatIfState, Cluster>> states;
    states.emplace_back(WhatIfState::now, cluster);
    if (!options.add_nodes.empty() || !options.remove.empty() || !options.uncordon.empty())
        states.emplace_back(WhatIfState::changed,
                            Cluster::build(detail::changed(cluster, options, result.lost)));

    // The queue of the last state has all jobs: a change adds displaced ones, a consolidation none.
    std::map<std::pair<bool, std::string>, std::size_t> row;
    for (const auto& job : detail::queue(states.back().second)) {
        row.emplace(std::pair(job.is_job, job.name), result.jobs.size());
        WaitingJob waiting{.name = job.name,
                           .priority = job.priority,
                           .created = job.created,
                           .pods = std::ssize(job.pods),
                           .displaced = true};
        for (const auto pod : job.pods)
            waiting.gpus += static_cast<double>(states.back().second.gpu_milli(pod)) / 1000;
        waiting.outcomes.resize(states.size() + (options.consolidate ? 1 : 0));
        result.jobs.push_back(std::move(waiting));
    }
    const auto answer = [&](WhatIfState state, const Cluster& at, std::int64_t moves) {
        const auto s = result.states.size();
        auto one = detail::describe(at, state, shapes);
        one.moves = moves;
        detail::Starter queued(at, inner), alone(at, inner);
        const auto emptied = detail::emptied(at);
        const auto jobs = detail::queue(at);
        for (const auto& job : jobs) {
            budget.report("what-if", one.jobs, std::ssize(jobs));
            auto& waiting = result.jobs[row.at({job.is_job, job.name})];
            if (state == WhatIfState::now) waiting.displaced = false;
            auto& outcome = waiting.outcomes[s];
            ++one.jobs;
            if (budget.exhausted()) {
                outcome.reason = "not tried";
                continue;
            }
            outcome = queued.start(job);
            if (!outcome.starts && !find_waiting(at, job.pods))
                if (auto why = detail::why_impossible(at, emptied, job, inner); !why.empty())
                    outcome.reason = std::move(why);
            if (const auto note = find_note(at.inventory(), job.pods); !outcome.starts && !note.empty())
                outcome.reason += "; " + note;
            outcome.alone = alone.starts_alone(job);
            one.starts += outcome.starts ? 1 : 0;
            one.alone += outcome.alone ? 1 : 0;
            one.pods += outcome.pods;
            for (const auto pod : job.pods)
                if (queued.cluster().is_placed(pod))
                    one.placements.push_back({at.name(pod), at.name(queued.cluster().node_of(pod)),
                                              gpu_list(queued.cluster().gpus_of(pod))});
        }
        result.states.push_back(std::move(one));
    };
    for (const auto& [state, at] : states) answer(state, at, 0);
    auto plan_stopped = StopReason::completed;
    if (options.consolidate) {
        Options plan_options;
        plan_options.preset = options.preset;
        plan_options.seed = options.seed;
        plan_options.threads = options.threads;
        // The other half is for the jobs.
        if (const auto left = budget.remaining_s()) plan_options.time_limit = *left / 2;
        plan_options.search.bound_method = BoundMethod::none;
        const auto& before = states.back().second;
        const auto plan = consolidate(before, plan_options, inner);
        plan_stopped = plan.stop_reason;
        answer(WhatIfState::consolidated, apply(before, plan.plan), plan.stats.moves);
    }
    result.stop_reason = budget.exhausted() ? budget.reason() : plan_stopped;
    return result;
}

}  // namespace gpusched::consolidation
