// SPDX-License-Identifier: Apache-2.0
// Workspace: a private copy of the cluster for one group, with moves that can be undone.
#pragma once

#include <gpusched/allocation/concepts.hpp>
#include <gpusched/consolidation/concepts.hpp>
#include <gpusched/consolidation/placement_rule.hpp>
#include <gpusched/consolidation/result.hpp>
#include <gpusched/consolidation/rounds.hpp>
#include <gpusched/consolidation/scope.hpp>
#include <gpusched/consolidation/waves.hpp>
#include <gpusched/model/cluster.hpp>
#include <gpusched/model/feasibility.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

namespace gpusched::consolidation::detail {

/// A request fails without a search where one failed that asked for no more of anything, was allowed at least the
/// same depth and may run on the same nodes. A heuristic: what failed may succeed after later moves, so the memory is
/// cleared at every round. A failed search leaves out the node that is being vacated, its source, which may be a
/// destination later: each failure keeps its source. What a task with extras, or one that avoids, wants near or spreads, failed
/// of is known of those with the same constraints.
class FailedRequests {
  public:
    explicit FailedRequests(const Cluster& cluster);

    void clear();

    /// @param cluster of the tasks and requirements that the memory was made for, whoever runs where
    [[nodiscard]] bool dominates(const Cluster& cluster, TaskId task, int depth) const {
        const auto& request = requests_[index(task)];
        return knows(classes_[request.of], request, depth) ||
               (!alike_.empty() && knows(alike(cluster, task), request, depth));
    }
    /// @param source the node that was being vacated
    void add(const Cluster& cluster, TaskId task, int depth, NodeId source);
    /// The one node that the failures which dominate the request have left out: their source. `none` where they have several
    /// sources, for then each search has looked at the sources of the others.
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
        const bool is_only =
            is_only_one(classes_[request.of]) && (alike_.empty() || is_only_one(alike(cluster, task)));
        return is_only ? source : none<NodeId>;
    }

  private:
    /// What a task asks for, side by side: searches read it of tasks all over the cluster.
    struct Request {
        std::int64_t cpu_milli, memory_mib;
        std::int32_t gpu_milli;
        std::uint32_t of;  // index into `classes_`
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
    /// All that decides where a task may run beside its request: tasks of one job, mostly.
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
    /// What is known of tasks with the same constraints.
    [[nodiscard]] const std::vector<Failure>& alike(const Cluster& cluster, TaskId task) const;
    static Constraints constraints_of(const Cluster& cluster, TaskId task);

    std::vector<Request> requests_;              // by task
    std::vector<std::vector<Failure>> classes_;  // by requirement, and whether the task may borrow
    std::unordered_map<Constraints, std::vector<Failure>, Hash> alike_;
};


/// What a search works on: its own copy of the snapshot and the indices over it.
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

    /// Of `on_stack`: nothing comes to the node and nothing else leaves it; or nothing else leaves it.
    static constexpr std::uint8_t passed = 1, may_return = 2;

    const Cluster& snapshot;
    Cluster cluster;
    const Scope& scope;
    FreeIndex index;
    std::vector<std::uint8_t> on_stack;  // nodes that a chain under construction runs through: 0, or as below
    FailedRequests failed;
    AnyPlacementRule rule;  // of the caller, in the state of `cluster`
    std::int64_t least_move_cost = std::numeric_limits<std::int64_t>::max();  // of the tasks that may move
    std::size_t applied = 0;  // how many of the joined steps the cluster has seen
    /// An empty node that is offered like others until it is known what it is good for: moves onto it do not count as opening it.
    NodeId on_trial = none<NodeId>;

    /// Forgets the requests that found no place.
    void forget_failures() {
        failed.clear();
        next(failures_, notes_, &Notes::no_victims, std::uint32_t{most_depth});
    }
    /// Starts a new list of destinations.
    void start_list() { next(lists_, notes_, &Notes::listed, 1u); }
    /// Puts a node on the list. @return false where it is there already
    bool put_on_list(NodeId node) {
        return std::exchange(notes_[gpusched::index(node)].listed, lists_) != lists_;
    }
    /// True where it is known that no task of the node may leave it by moves nested so deep: none of them may move at all, or all that may
    /// are known to find no place.
    [[nodiscard]] bool has_no_victims(NodeId node, int depth) const {
        return notes_[gpusched::index(node)].no_victims >= failures_ + static_cast<std::uint32_t>(depth);
    }
    /// Remembers that until something on the node changes, or failures are forgotten.
    void note_no_victims(NodeId node, int depth) {
        auto& note = notes_[gpusched::index(node)].no_victims;
        note = std::max(note, failures_ + static_cast<std::uint32_t>(depth));
    }
    /// To be called after every change of what runs on a node.
    void usage_changed(NodeId node) {
        index.usage_changed(cluster, node);
        notes_[gpusched::index(node)].no_victims = 0;
        if (scope.opens(node) && node != on_trial) follow_opening(node);
    }
    /// To be called after every move, and after one is taken back, where `from` and `to` change places.
    void moved(TaskId task, NodeId from, NodeId to) {
        usage_changed(from);
        usage_changed(to);
        if (rule) rule.move(cluster, task, from, to);
    }

  private:
    // A node that was empty before the plan is offered as long as others are on it.
    void follow_opening(NodeId node) {
        const bool used = cluster.occupants(node) > 0;
        if (used && !index.is_open(node))
            index.open(cluster, node);
        else if (!used)
            index.close(node);
    }

    // What is known of a node, side by side: searches ask it of many nodes that lie far apart. 0 = nothing.
    struct Notes {
        std::uint32_t listed = 0;      // the list of destinations that it was put on last
        std::uint32_t no_victims = 0;  // the number of the failures at hand and a depth
    };
    // Goes on to the next number; where there is none, to the first one, and no node has any.
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

/// What it costs to move away the tasks that are on a node and at home there.
[[nodiscard]] inline std::int64_t cost_of_own_moves(const Workspace& work, NodeId node) {
    std::int64_t cost = 0;
    for (const auto task : work.cluster.tasks_on(node))
        if (work.scope.movable[index(task)] && work.snapshot.node_of(task) == node)
            cost += work.cluster.inventory().tasks.move_cost[index(task)];
    return cost;
}

/// The moves made since the account was opened, each possible when its turn comes, and what they come to.
template <class Policies>
class OpenMoves {
  public:
    /// @param refusals what keeps tasks from where they are to go is counted there
    OpenMoves(Workspace& work, const Policies& policies, Refusals& refusals)
        : work_(work), policies_(policies), refusals_(refusals) {}

    /// What comes next is to vacate `node`, which holds `tasks`.
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
    /// Moves a task if nothing stands in the way.
    /// @param wanted the GPUs that it takes where they suit it; others are for the policy to pick
    bool place(TaskId task, NodeId node, GpuMask wanted = 0) {
        auto& cluster = work_.cluster;
        if (work_.on_stack[index(node)] == Workspace::passed) return refuse(&Refusals::refused_by_chain);
        if (const auto found = find_obstacle(cluster, task, node); found != Obstacle::none) {
            refusals_.count(found);
            return false;
        }
        if (work_.rule && !work_.rule.allows(cluster, task, node)) return refuse(&Refusals::refused_by_rule);
        make(task, node,
             wanted != 0 && gpus_fit(cluster, task, node, wanted)
                 ? wanted
                 : allocation::pick_gpus(policies_.gpu_picker, cluster, task, node));
        return true;
    }
    /// Moves a task back to where it was in the snapshot, to the same GPUs, if nothing stands in the way.
    /// Where it could not go today (a taint, a failed GPU) it may still stay.
    /// @param only_own nothing but tasks that were there in the snapshot is on that node, so that there is room
    bool send_home(TaskId task, bool only_own) {
        const auto home = work_.snapshot.node_of(task);
        const auto gpus = work_.snapshot.gpus_of(task);
        if (find_group_obstacle(work_.cluster, task, home) != Obstacle::none) return false;
        if (work_.rule && !work_.rule.allows(work_.cluster, task, home)) return false;
        if (!only_own && !fits_at_home(task, home, gpus)) return false;
        make(task, home, gpus);
        return true;
    }
    /// What moving the first task onto the node costs, in thousandths; 0 where the node was in use before the plan.
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
            work_.cluster.undo();
            work_.moved(step.task, step.to, step.from);
        }
    }
    /// What it takes so far; the tasks of the node count before they move.
    [[nodiscard]] const ChainSet& chains() const noexcept { return chains_; }
    /// The moves so far.
    [[nodiscard]] std::span<const Step> steps() const noexcept { return steps_; }
    /// Closes the account: the moves are made.
    [[nodiscard]] Vacated close() { return {std::exchange(chains_, {}), std::exchange(steps_, {}), {}}; }
    /// Closes the account: nothing has happened.
    void drop() {
        undo_to(0);
        chains_ = {};
    }

  private:
    bool refuse(std::int64_t Refusals::*by) noexcept {
        ++(refusals_.*by);
        return false;
    }
    [[nodiscard]] bool fits_at_home(TaskId task, NodeId home, GpuMask gpus) const {
        const auto& cluster = work_.cluster;
        const auto& inv = cluster.inventory();
        const auto& resources = inv.extras[inv.tasks.extras[index(task)]].resources;
        const auto share_of = [&](TaskId of, int g) {
            return (cluster.devices(home) & gpu_bit(g)) != 0 ? whole_gpu_milli
                                                             : inv.tasks.gpu_share_milli[index(of)];
        };
        std::array<int, 64> used{};
        for (const auto other : cluster.tasks_on(home)) {
            if (inv.tasks.standby[index(other)] && cluster.may_borrow(task)) continue;
            for_each_gpu(cluster.gpus_of(other) & gpus,
                         [&](int g) { used[static_cast<std::size_t>(g)] += share_of(other, g); });
        }
        bool free = true;
        for_each_gpu(gpus, [&](int g) {
            free = free && used[static_cast<std::size_t>(g)] + share_of(task, g) <= whole_gpu_milli;
        });
        return free &&
               inv.tasks.cpu_milli[index(task)] <= cluster.cpu_free_milli(home, cluster.lent_to(task)) &&
               inv.tasks.memory_mib[index(task)] <= cluster.memory_free_mib(home) &&
               std::all_of(resources.begin(), resources.end(), [&](const auto& r) {
                   return r.amount <= cluster.resource_free(home, r.resource);
               });
    }
    void make(TaskId task, NodeId node, GpuMask gpus) {
        const auto from = work_.cluster.node_of(task);
        work_.cluster.assign(task, node, gpus);
        work_.moved(task, from, node);
        steps_.push_back({task, from, node, gpus, 0});
        count(steps_.back(), 1);
    }
    // While the step is made.
    void count(const Step& step, int sign) {
        if (!work_.scope.may_open.empty()) count_opening(step, sign);
        // The node's own tasks are counted already. Others count while they are away from where they were in the snapshot.
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
