// SPDX-License-Identifier: Apache-2.0
// Workspace: a private copy of the cluster for one group, moves on it that can be undone, and failed
// requests.
#pragma once

#include <gpusched/allocation/concepts.hpp>
#include <gpusched/consolidation/concepts.hpp>
#include <gpusched/consolidation/placement_rule.hpp>
#include <gpusched/consolidation/result.hpp>
#include <gpusched/consolidation/scope.hpp>
#include <gpusched/consolidation/waves.hpp>
#include <gpusched/model/cluster.hpp>
#include <gpusched/model/feasibility.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

namespace gpusched::consolidation::detail {

/// Remembers requests that found no place, so that no harder one is tried.
///
/// A request fails at once if a failed one asked for at most as much of every resource, with at least the
/// same depth, and may run on the same nodes. This is a heuristic: later moves may free a place for it, so
/// every round begins without failures.
///
/// A failed search does not consider its source, the node that is being vacated. That node may be a
/// destination later, so each failure stores its source. Failures of tasks with extras, avoid, near or spread
/// constraints apply to tasks with the same constraints.
class FailedRequests {
  public:
    explicit FailedRequests(const Cluster& cluster);

    void clear();

    /// @param cluster with the tasks and requirements of the constructor's cluster; placements may differ
    [[nodiscard]] bool dominates(const Cluster& cluster, TaskId task, int depth) const {
        const auto& request = requests_[index(task)];
        return knows(by_class_[request.of], request, depth) ||
               (!by_constraints_.empty() && knows(with_constraints_of(cluster, task), request, depth));
    }
    /// @param source the node that is being vacated
    void add(const Cluster& cluster, TaskId task, int depth, NodeId source);
    /// Returns the common source of all failures that dominate the request: the one node that no failed
    /// search considered. Returns `none` if they have several sources, since each search considered the
    /// sources of the others.
    [[nodiscard]] NodeId unseen(const Cluster& cluster, TaskId task, int depth) const {
        const auto& request = requests_[index(task)];
        auto source = none<NodeId>;
        const auto is_only_one = [&](const std::vector<Failure>& failures) {
            for (const auto& failure : failures)
                if (failure.is_no_harder(request, depth)) {
                    if (source != none<NodeId> && source != failure.source) return false;
                    source = failure.source;
                }
            return true;
        };
        const bool is_only = is_only_one(by_class_[request.of]) &&
                             (by_constraints_.empty() || is_only_one(with_constraints_of(cluster, task)));
        return is_only ? source : none<NodeId>;
    }

  private:
    /// The request of a task in one place: searches read those of tasks all over the cluster.
    struct Request {
        std::int64_t cpu_milli, memory_mib;
        std::int32_t gpu_milli;
        std::uint32_t of;  // index into `by_class_`
    };
    struct Failure {
        std::int64_t cpu_milli, memory_mib;
        std::int32_t gpu_milli;
        std::int32_t depth;
        NodeId source;
        [[nodiscard]] bool is_no_harder(const auto& other, int other_depth) const noexcept {
            return gpu_milli <= other.gpu_milli && cpu_milli <= other.cpu_milli &&
                   memory_mib <= other.memory_mib && depth >= other_depth;
        }
    };
    /// All that decides where a task may run besides its request. Mostly equal within a job.
    struct Constraints {
        std::uint32_t requirement, affinities, profile, extras;
        std::int64_t gpu_memory_mib;
        bool borrows;
        bool operator==(const Constraints&) const = default;
    };
    struct Hash {
        std::size_t operator()(const Constraints& c) const noexcept {
            return (std::size_t{c.profile} << 32 | c.extras) * 0x9E3779B97F4A7C15u + c.requirement;
        }
    };
    [[nodiscard]] static bool knows(const std::vector<Failure>& failures, const Request& request,
                                    int depth) noexcept {
        for (const auto& failure : failures)
            if (failure.is_no_harder(request, depth)) return true;
        return false;
    }
    [[nodiscard]] const std::vector<Failure>& with_constraints_of(const Cluster& cluster, TaskId task) const;
    static Constraints constraints_of(const Cluster& cluster, TaskId task);

    std::vector<Request> requests_;               // by task
    std::vector<std::vector<Failure>> by_class_;  // by requirement, and whether the task may borrow
    std::unordered_map<Constraints, std::vector<Failure>, Hash> by_constraints_;
};

/// Sorts tasks by GPUs, then cores, descending: most failures come early.
void put_hardest_first(const Cluster& cluster, std::span<TaskId> tasks);

/// The data of one search: its own copy of the snapshot and the indices over it.
struct Workspace {
    /// @param r in the state of `before`
    Workspace(const Cluster& before, const Scope& s, const AnyPlacementRule& r)
        : snapshot(before), cluster(before), scope(s), index(cluster), on_stack(cluster.node_slots()),
          failed(before), rule(r), notes_(cluster.node_slots()) {
        const auto& costs = before.inventory().tasks.move_cost;
        for (const auto task : before.tasks())
            if (s.movable[gpusched::index(task)])
                least_move_cost = std::min(least_move_cost, costs[gpusched::index(task)]);
    }
    Workspace(const Workspace&) = delete;
    Workspace& operator=(const Workspace&) = delete;

    /// Values of `on_stack`: `passed` nodes receive nothing, and nothing else leaves them; `may_return` nodes
    /// receive.
    static constexpr std::uint8_t passed = 1, may_return = 2;

    const Cluster& snapshot;
    Cluster cluster;
    const Scope& scope;
    FreeIndex index;
    std::vector<std::uint8_t> on_stack;  // by node: part of the chain under construction; 0 = no
    FailedRequests failed;
    AnyPlacementRule rule;  // of the options, in the state of `cluster`
    std::int64_t least_move_cost = std::numeric_limits<std::int64_t>::max();  // of movable tasks
    std::size_t applied = 0;  // joined steps made on `cluster`
    /// An empty node that is offered like others until its gain is known: moves onto it do not count as
    /// opening it.
    NodeId on_trial = none<NodeId>;

    void forget_failures() {
        failed.clear();
        next(failures_, notes_, &Notes::no_victims, std::uint32_t{most_depth});
    }
    /// Starts a new list of destinations.
    void start_list() { next(lists_, notes_, &Notes::listed, 1u); }
    /// Puts a node on the list. @return false if it is already there
    bool put_on_list(NodeId node) {
        return std::exchange(notes_[gpusched::index(node)].listed, lists_) != lists_;
    }
    /// Returns true if no task of the node can leave it by moves nested to this depth: none is movable, or
    /// all that are have failed.
    [[nodiscard]] bool has_no_victims(NodeId node, int depth) const {
        return notes_[gpusched::index(node)].no_victims >= failures_ + static_cast<std::uint32_t>(depth);
    }
    /// Remembers that until the node changes or failures are forgotten.
    void note_no_victims(NodeId node, int depth) {
        auto& note = notes_[gpusched::index(node)].no_victims;
        note = std::max(note, failures_ + static_cast<std::uint32_t>(depth));
    }
    /// Must be called after every change of a node's tasks.
    void usage_changed(NodeId node) {
        index.usage_changed(cluster, node);
        notes_[gpusched::index(node)].no_victims = 0;
        if (scope.opens(node) && node != on_trial) follow_opening(node);
    }
    /// Must be called after every move, and after one is undone with `from` and `to` exchanged.
    void moved(TaskId task, NodeId from, NodeId to) {
        usage_changed(from);
        usage_changed(to);
        if (rule) rule.move(cluster, task, from, to);
    }
    /// Undoes the last moves of the cluster, which are these steps.
    void undo(std::span<const Step> steps) {
        for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
            cluster.undo();
            moved(step->task, step->to, step->from);
        }
    }

  private:
    // A node that was empty before the plan is offered while it holds other tasks.
    void follow_opening(NodeId node) {
        const bool used = cluster.occupants(node) > 0;
        if (used && !index.is_open(node))
            index.open(cluster, node);
        else if (!used)
            index.close(node);
    }

    // Facts about a node in one place: searches read those of many distant nodes. 0 = nothing is known.
    struct Notes {
        std::uint32_t listed = 0;  // number of the last list of destinations that has the node
        // `failures_` plus the greatest depth, >= 1, at which no task can leave. `forget_failures` raises
        // `failures_` by `most_depth`, so that older entries count as unknown.
        std::uint32_t no_victims = 0;
    };
    // Advances a number. On overflow it restarts, and the column of all nodes is cleared.
    static void next(std::uint32_t& number, std::vector<Notes>& notes, std::uint32_t Notes::*column,
                     std::uint32_t step) {
        if (number > std::numeric_limits<std::uint32_t>::max() - 2 * step) {
            for (auto& note : notes) note.*column = 0;
            number = 0;
        }
        number += step;
    }

    std::vector<Notes> notes_;
    std::uint32_t lists_ = 0, failures_ = 1;
};

/// Returns the cost of moving away the tasks of a node that were there before the plan.
[[nodiscard]] inline std::int64_t cost_of_own_moves(const Workspace& work, NodeId node) {
    std::int64_t cost = 0;
    for (const auto task : work.cluster.tasks_on(node))
        if (work.scope.movable[index(task)] && work.snapshot.node_of(task) == node)
            cost += work.cluster.inventory().tasks.move_cost[index(task)];
    return cost;
}

/// Returns whether a task fits on these GPUs of its node in the snapshot, ignoring eligibility and failed
/// GPUs.
[[nodiscard]] bool fits_at_home(const Cluster& cluster, TaskId task, NodeId home, GpuMask gpus);

/// All steps that vacate one node. If `chains` has no node, steps that lead from one plan to another.
struct Vacated {
    ChainSet chains;
    std::vector<Step> steps;
    std::vector<NodeId> reopened{};  ///< nodes that were vacated before and no longer are
};

/// The moves made since `open`, each possible in this order, and their cost.
template <class Policies>
class OpenMoves {
  public:
    /// @param refusals counts the obstacles of moves
    OpenMoves(Workspace& work, const Policies& policies, Refusals& refusals)
        : work_(work), policies_(policies), refusals_(refusals) {}

    /// Starts the moves that vacate `node`, which holds `tasks`.
    void open(NodeId node, std::span<const TaskId> tasks) {
        const auto& inv = work_.cluster.inventory();
        chains_ = {.node = node,
                   .gain = static_cast<std::int64_t>(policies_.node_weight(work_.cluster, node))};
        for (const auto task : tasks)
            if (work_.snapshot.node_of(task) == node) {
                ++chains_.tasks;
                chains_.cost += inv.tasks.move_cost[index(task)];
            }
        chains_.moves = chains_.tasks;
    }
    /// Moves a task if no constraint prevents it.
    /// @param preferred GPUs that it takes if they fit; else the policy picks
    bool place(TaskId task, NodeId node, GpuMask preferred = 0) {
        auto& cluster = work_.cluster;
        if (work_.on_stack[index(node)] == Workspace::passed) return refuse(&Refusals::refused_by_chain);
        if (const auto found = find_obstacle(cluster, task, node); found != Obstacle::none) {
            refusals_.count(found);
            return false;
        }
        if (work_.rule && !work_.rule.allows(cluster, task, node)) return refuse(&Refusals::refused_by_rule);
        make(task, node,
             preferred != 0 && gpus_fit(cluster, task, node, preferred)
                 ? preferred
                 : allocation::pick_gpus(policies_.gpu_picker, cluster, task, node));
        return true;
    }
    /// Moves a task back to its node and GPUs in the snapshot if no constraint prevents it. It may return
    /// even if it could not newly go there, for example because of a taint or a failed GPU.
    /// @param only_own the node holds only tasks that were there in the snapshot, so that the task fits
    bool send_home(TaskId task, bool only_own) {
        const auto home = work_.snapshot.node_of(task);
        const auto gpus = work_.snapshot.gpus_of(task);
        if (find_group_obstacle(work_.cluster, task, home) != Obstacle::none) return false;
        if (work_.rule && !work_.rule.allows(work_.cluster, task, home)) return false;
        if (!only_own && !fits_at_home(work_.cluster, task, home, gpus)) return false;
        make(task, home, gpus);
        return true;
    }
    /// Returns the cost of moving the first task onto the node, in thousandths; 0 if the node was in use
    /// before the plan.
    [[nodiscard]] std::int64_t cost_of_opening(NodeId node) const {
        if (!work_.scope.opens(node) || node == work_.on_trial) return 0;
        return opening_milli(static_cast<std::int64_t>(policies_.node_weight(work_.cluster, node)),
                             work_.scope.open_price);
    }
    [[nodiscard]] std::size_t mark() const noexcept { return steps_.size(); }
    void undo_to(std::size_t mark) {
        while (steps_.size() > mark) {
            const auto step = steps_.back();
            steps_.pop_back();
            count(step, -1);
            work_.undo({&step, 1});
        }
    }
    /// The moves so far in numbers; the tasks of the node count before they move.
    [[nodiscard]] const ChainSet& chains() const noexcept { return chains_; }
    [[nodiscard]] std::span<const Step> steps() const noexcept { return steps_; }
    /// Keeps the moves.
    [[nodiscard]] Vacated close() { return {std::exchange(chains_, {}), std::exchange(steps_, {}), {}}; }
    /// Undoes the moves.
    void drop() {
        undo_to(0);
        chains_ = {};
    }

  private:
    bool refuse(std::int64_t Refusals::*by) noexcept {
        ++(refusals_.*by);
        return false;
    }
    void make(TaskId task, NodeId node, GpuMask gpus) {
        const auto from = work_.cluster.node_of(task);
        work_.cluster.assign(task, node, gpus);
        work_.moved(task, from, node);
        steps_.push_back({task, from, node, gpus, 0});
        count(steps_.back(), 1);
    }
    // Must be called while the step is made.
    void count(const Step& step, int sign) {
        if (!work_.scope.may_open.empty()) count_opening(step, sign);
        // The node's own tasks are already counted. Others count while they are away from their node in the
        // snapshot.
        const auto home = work_.snapshot.node_of(step.task);
        if (home == chains_.node) return;
        const int leaves = (home == step.from ? 1 : 0) - (home == step.to ? 1 : 0);
        chains_.moves += sign * leaves;
        chains_.cost += sign * leaves * work_.cluster.inventory().tasks.move_cost[index(step.task)];
    }
    void count_opening(const Step& step, int sign) {
        const auto count_node = [&](NodeId node, int by) {
            if (!work_.scope.opens(node) || node == work_.on_trial) return;
            chains_.opening += by * cost_of_opening(node);
            chains_.opened += by;
        };
        if (work_.cluster.occupants(step.to) == 1) count_node(step.to, sign);
        if (work_.cluster.occupants(step.from) == 0) count_node(step.from, -sign);
    }

    Workspace& work_;
    const Policies& policies_;
    Refusals& refusals_;
    ChainSet chains_;
    std::vector<Step> steps_;
};

}  // namespace gpusched::consolidation::detail
