// SPDX-License-Identifier: Apache-2.0
// ChainSearch: vacates the nodes of one group by ejection chains, on a private copy of the cluster.
#pragma once

#include <gpusched/consolidation/concepts.hpp>
#include <gpusched/consolidation/result.hpp>
#include <gpusched/consolidation/workspace.hpp>
#include <gpusched/core/budget.hpp>
#include <gpusched/core/detail/small_vector.hpp>
#include <gpusched/core/ids.hpp>
#include <gpusched/core/rng.hpp>

#include <boost/container/static_vector.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

namespace gpusched::consolidation::detail {

/// A node with its key; nodes are tried in ascending order.
using NodeKey = std::pair<std::int64_t, NodeId>;

/// Reorders sorted nodes by keys that grow by a random factor of at most 1.5; ties are random. Keys are
/// measured from 0, or from the lowest key if it is negative; keys beyond 2^58 count as equal.
void add_noise(std::vector<NodeKey>& sorted, std::uint64_t seed);

/// The properties that decide which tasks an empty node may take and what opening it costs, except its
/// position in the network, its name and its neighbours. The weight comes first, so that kinds of low weight
/// are tried first.
using EmptyKind = std::tuple<std::int64_t, std::uint32_t, std::uint32_t, std::uint32_t, GpuMask, GpuMask,
                             std::int64_t, std::int64_t, std::int64_t, std::vector<std::int64_t>>;

[[nodiscard]] EmptyKind empty_kind(const Cluster& cluster, NodeId node, std::int64_t weight);

/// Returns whether the kind of an empty node alone decides that the task may go there: the task has no group
/// constraint and no list of nodes.
[[nodiscard]] bool any_of_kind_will_do(const Cluster& cluster, TaskId task);

/// The nodes of a group that may be opened.
struct EmptyNodes {
    std::vector<std::vector<NodeId>> kinds{};  ///< by ascending weight; nodes of one kind ascending
    std::vector<NodeId> all{};                 ///< kind by kind

    EmptyNodes() = default;
    /// @param weight the policy's weight of a node
    template <class Weight>
    EmptyNodes(const Workspace& work, std::span<const NodeId> group, const Weight& weight) {
        std::map<EmptyKind, std::vector<NodeId>> found;
        for (const auto node : group)
            if (work.scope.opens(node))
                found[empty_kind(work.snapshot, node, static_cast<std::int64_t>(weight(work.snapshot, node)))]
                    .push_back(node);
        for (auto& [kind, nodes] : found) {
            std::sort(nodes.begin(), nodes.end());
            all.insert(all.end(), nodes.begin(), nodes.end());
            kinds.push_back(std::move(nodes));
        }
    }
    [[nodiscard]] bool empty() const noexcept { return all.empty(); }
};

/// The recursive search of one group. A task leaves its old node only after its new place is found, so that
/// the steps in their order are valid make-before-break moves.
template <class Policies>
class ChainSearch {
    // Time to reserve for joining, ordering and counting each move after the search; measured: 2.8 us.
    static constexpr double ordering_s_per_move = 3e-6;
    // Destinations are compared in batches, so that a success does not have to consider all of them. At first
    // only a few are listed, else the time would grow with the square of the group.
    static constexpr std::size_t batch = 16, first_destinations = 64;

  public:
    /// @param noise a seed of noise in the node order; absent = none
    /// @param by_price nodes whose moves cost the least for their weight come first
    ChainSearch(Workspace& work, const Policies& policies, int depth, Budget& budget, Statistics& stats,
                std::optional<std::uint64_t> noise = {}, bool by_price = false)
        : work_(work), cluster_(work.cluster), policies_(policies), depth_(depth), budget_(budget),
          stats_(stats), noise_(noise), by_price_(by_price), moves_(work, policies, stats) {}

    /// Tries every node of `group` once. Leaves all successful moves made on the workspace's cluster.
    std::vector<Vacated> run(std::span<const NodeId> group, std::span<const std::uint8_t> vacated) {
        work_.index.reset(cluster_, group, work_.scope);
        work_.forget_failures();
        std::vector<NodeKey> order;
        order.reserve(group.size());
        for (const auto node : group) {
            if (vacated[index(node)])
                work_.index.close(node);
            else if (work_.scope.may_vacate[index(node)])
                order.emplace_back(static_cast<std::int64_t>(policies_.node_order(cluster_, node)), node);
        }
        std::sort(order.begin(), order.end());
        if (by_price_) put_cheapest_first(order);
        if (noise_) add_noise(order, *noise_);
        std::vector<Vacated> found;
        for (const auto& [key, node] : order) {
            if (budget_.exhausted()) break;
            if (!vacate(node, depth_)) continue;
            found.push_back(moves_.close());
            budget_.reserve(ordering_s_per_move * static_cast<double>(found.back().steps.size()));
        }
        return found;
    }

    /// Moves all tasks off a node if that is worth it; else changes nothing. The moves stay open.
    bool vacate(NodeId node, int depth) {
        const auto& t = cluster_.inventory().tasks;
        boost::container::small_vector<TaskId, 32> tasks;
        for (const auto task : cluster_.tasks_on(node))
            if (!t.daemon[index(task)]) tasks.push_back(task);
        work_.index.close(node);
        if (move_off(node, {tasks.data(), tasks.size()}, depth, Workspace::passed)) return true;
        work_.index.open(cluster_, node);
        return false;
    }
    /// The same for some of a node's tasks, which it reorders.
    /// @param meanwhile value of `on_stack` for the node: `Workspace::passed`, or `may_return` if others may
    ///     come to it
    bool move_off(NodeId node, std::span<TaskId> tasks, int depth, std::uint8_t meanwhile) {
        ++stats_.nodes_tried;
        put_hardest_first(cluster_, tasks);
        depth_ = depth;
        work_.on_stack[index(node)] = meanwhile;
        moves_.open(node, tasks);
        const bool all = is_worth(0) && std::all_of(tasks.begin(), tasks.end(), [&](TaskId task) {
                             return find_place(task) && is_worth(0);
                         });
        work_.on_stack[index(node)] = 0;
        if (!all) moves_.drop();
        return all;
    }
    /// From now on, tasks of a node that is being vacated may go to these empty nodes if they find no other
    /// place and the node is worth it. `empty` must outlive the search.
    void offer(const EmptyNodes& empty) { empty_ = &empty; }
    /// The moves of the last node that was vacated, until they are closed.
    [[nodiscard]] OpenMoves<Policies>& moves() noexcept { return moves_; }

  private:
    struct Candidate {
        std::int64_t cost;
        std::uint32_t victims;   // number
        std::uint32_t position;  // in the order of the destination ranking
        NodeId node;
        auto operator<=>(const Candidate&) const = default;
    };
    struct Level {  // scratch space of one depth of the recursion
        boost::container::small_vector<NodeId, first_destinations> candidates;
        boost::container::static_vector<Candidate, batch> chosen;
        std::vector<Victim> movable;
        std::vector<Victim> victims;
        bool grouped = false;  // whether group constraints limit the task's destinations
    };
    // Sorts nodes by the cost of their own moves per weight; equal ones stay in the order of the policy.
    void put_cheapest_first(std::vector<NodeKey>& order) const {
        for (auto& [key, node] : order)
            key = price_of_moves(static_cast<std::int64_t>(policies_.node_weight(cluster_, node)),
                                 cost_of_own_moves(work_, node));
        std::stable_sort(order.begin(), order.end(),
                         [](const NodeKey& a, const NodeKey& b) { return a.first < b.first; });
    }
    // Returns whether the node would be worth this number of moves in addition to those so far.
    bool is_worth(int further) {
        auto chains = moves_.chains();
        chains.moves += further;
        chains.cost += further * work_.least_move_cost;
        return accepts(chains);
    }
    bool accepts(const ChainSet& chains) {
        return policies_.acceptance(chains) || refuse(&Refusals::refused_by_price);
    }
    bool refuse(std::int64_t Refusals::*by) noexcept {
        ++(stats_.*by);
        return false;
    }

    // Prefers the shortest nesting that works, since every level costs a move, unless its task has already
    // moved.
    bool find_place(TaskId task) {
        if (!policies_.switches.shortest_chains_first)
            return eject(task, depth_) || place_on_former_source(task, depth_) || open_for(task);
        for (int depth = 1; depth <= depth_ && is_worth(depth - 1); ++depth)
            if (eject(task, depth) || (depth == 1 && place_on_former_source(task, depth))) return true;
        return open_for(task);
    }
    // Tries the node that earlier, failed searches excluded because they were vacating it.
    bool place_on_former_source(TaskId task, int depth) {
        if (!policies_.switches.remember_failures) return false;
        const auto source = work_.failed.unseen(cluster_, task, depth);
        return source != none<NodeId> && source != moves_.chains().node && work_.index.is_open(source) &&
               place(task, source);
    }
    bool open_for(TaskId task) {
        if (empty_ == nullptr) return false;
        const bool first_decides = !work_.rule && any_of_kind_will_do(cluster_, task);
        for (const auto& alike : empty_->kinds)
            for (const auto node : alike) {
                if (cluster_.occupants(node) > 0 || node == work_.on_trial) continue;
                auto chains = moves_.chains();
                chains.opening += moves_.cost_of_opening(node);
                if (!accepts(chains)) return false;
                if (place(task, node)) {
                    work_.forget_failures();  // other tasks fit next to it
                    return true;
                }
                if (first_decides) break;
            }
        return false;
    }

    // Places `task`, moving at most depth - 1 levels of victims. Changes nothing if it fails.
    bool eject(TaskId task, int depth) {
        ++stats_.eject_calls;
        if (policies_.switches.remember_failures && work_.failed.dominates(cluster_, task, depth)) {
            ++stats_.requests_dominated;
            return false;
        }
        if (policies_.destination_ranking.visit(cluster_, work_.index, task,
                                                [&](NodeId node) { return place(task, node); }))
            return true;
        if (depth > 1 && eject_others(task, depth)) return true;
        // A caller's rule may reject this task and accept another one, so its failures are not remembered.
        if (policies_.switches.remember_failures && !work_.rule && !budget_.exhausted())
            work_.failed.add(cluster_, task, depth, moves_.chains().node);
        return false;
    }

    bool place(TaskId task, NodeId node) {
        ++stats_.destinations_scanned;
        return moves_.place(task, node);
    }

    // Places a task on some node by moving other tasks off it.
    bool eject_others(TaskId task, int depth) {
        auto& level = levels_[static_cast<std::size_t>(depth)];
        level.grouped = !cluster_.inventory().memberships(task).empty();
        level.chosen.clear();
        level.candidates.clear();
        bool all = list_candidates(task, level, first_destinations);
        for (std::size_t i = 0;; ++i) {
            if (i == level.candidates.size() && !all) all = list_candidates(task, level);
            if (i == level.candidates.size()) return place_on_cheapest(task, depth);
            if (i % 64 == 63 && budget_.exhausted()) return false;
            const auto node = level.candidates[i];
            if (!choose_victims(task, node, depth)) continue;
            const auto cost = cost_of(level.victims);
            if (!takes_cheapest_first(policies_.ejection_rule) || (cost == 0 && level.victims.size() == 1)) {
                if (budget_.exhausted()) return false;
                if (replace_victims(task, node, depth)) return true;
                continue;
            }
            level.chosen.push_back({cost, static_cast<std::uint32_t>(level.victims.size()),
                                    static_cast<std::uint32_t>(i), node});
            if (level.chosen.size() == batch && place_on_cheapest(task, depth)) return true;
        }
    }
    // Adds possible destinations up to `most` in total. Returns false if there may be more.
    bool list_candidates(TaskId task, Level& level,
                         std::size_t most = std::numeric_limits<std::size_t>::max()) {
        work_.start_list();
        for (const auto node : level.candidates) (void)work_.put_on_list(node);
        return !policies_.destination_ranking.visit_full(cluster_, work_.index, task, [&](NodeId node) {
            if (work_.put_on_list(node)) level.candidates.push_back(node);
            return level.candidates.size() == most;
        });
    }
    // Tries the chosen destinations, the cheapest first.
    bool place_on_cheapest(TaskId task, int depth) {
        auto& chosen = levels_[static_cast<std::size_t>(depth)].chosen;
        std::sort(chosen.begin(), chosen.end());
        for (std::size_t c = 0; c < chosen.size() && !budget_.exhausted(); ++c) {
            const auto at = chosen[c].node;
            if (choose_victims(task, at, depth) && replace_victims(task, at, depth)) return true;
        }
        chosen.clear();
        return false;
    }

    // Decides whether and which tasks would have to leave `node` for `task`.
    bool choose_victims(TaskId task, NodeId node, int depth) {
        ++stats_.destinations_scanned;
        const auto& inv = cluster_.inventory();
        if (work_.on_stack[index(node)]) return refuse(&Refusals::refused_by_chain);
        if (!inv.eligible(task, node)) return refuse(&Refusals::refused_by_eligibility);
        auto& level = levels_[static_cast<std::size_t>(depth)];
        if (level.grouped)
            if (const auto found = find_group_obstacle(cluster_, task, node); found != Obstacle::none) {
                stats_.count(found);
                return false;
            }
        if (work_.has_no_victims(node, depth - 1)) return refuse(&Refusals::refused_by_victims);
        level.movable.clear();
        for (const auto other : cluster_.tasks_on(node))
            if (work_.scope.movable[index(other)] && !work_.failed.dominates(cluster_, other, depth - 1))
                level.movable.push_back(Victim{other, work_.snapshot.node_of(other) != node});
        if (level.movable.empty()) {
            work_.note_no_victims(node, depth - 1);
            return refuse(&Refusals::refused_by_victims);
        }
        return policies_.ejection_rule(cluster_, task, node, level.movable, level.victims) ||
               refuse(&Refusals::refused_by_victims);
    }

    // Tasks that have already moved move again at no cost.
    std::int64_t cost_of(const std::vector<Victim>& victims) const {
        const auto& costs = cluster_.inventory().tasks.move_cost;
        std::int64_t cost = 0;
        for (const auto& victim : victims)
            if (!victim.moved) cost += costs[index(victim.task)];
        return cost;
    }

    // Moves the chosen victims off `node` until `task` fits, and places it there.
    bool replace_victims(TaskId task, NodeId node, int depth) {
        auto& level = levels_[static_cast<std::size_t>(depth)];
        const auto mark = moves_.mark();
        work_.on_stack[index(node)] = Workspace::passed;
        bool fits = false;
        for (std::size_t v = 0; v < level.victims.size() && !fits; ++v) {
            // A node may run empty for a moment, since `task` follows. A node that may be vacated is worth
            // more empty.
            const bool may_leave = cluster_.occupants(node) > 1 || !work_.scope.may_vacate[index(node)];
            const bool placed = may_leave && eject(level.victims[v].task, depth - 1);
            if (!placed && !skips_victims(policies_.ejection_rule)) break;
            fits = placed && find_obstacle(cluster_, task, node) == Obstacle::none;
        }
        work_.on_stack[index(node)] = 0;
        if (fits && place(task, node)) return true;
        moves_.undo_to(mark);
        return false;
    }

    Workspace& work_;
    Cluster& cluster_;
    const Policies& policies_;
    int depth_;
    Budget& budget_;
    Statistics& stats_;
    std::optional<std::uint64_t> noise_;
    const EmptyNodes* empty_ = nullptr;  // that may be opened
    bool by_price_;
    std::array<Level, most_depth + 1> levels_;
    OpenMoves<Policies> moves_;
};

}  // namespace gpusched::consolidation::detail
