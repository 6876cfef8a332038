// SPDX-License-Identifier: Apache-2.0
// ChainSearch: empties the nodes of one group by ejection chains.
#pragma once

#include <gpusched/consolidation/concepts.hpp>
#include <gpusched/consolidation/detail/tidy.hpp>
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

/// The properties that decide which tasks an empty node may take and what opening it costs, except its position in the network, its name
/// and its neighbours. The weight comes first, so that kinds of little weight are tried first.
using EmptyKind = std::tuple<std::int64_t, std::uint32_t, std::uint32_t, std::uint32_t, GpuMask, GpuMask,
                             std::int64_t, std::int64_t, std::int64_t, std::vector<std::int64_t>>;

[[nodiscard]] inline EmptyKind empty_kind(const Cluster& cluster, NodeId node, std::int64_t weight) {
    const auto& inv = cluster.inventory();
    const auto n = index(node);
    std::vector<std::int64_t> resources;
    for (std::uint32_t r = 0; r < inv.resource_names.size(); ++r)
        resources.push_back(cluster.resource_free(node, r));
    return {weight,
            inv.nodes.node_class[n],
            inv.nodes.hardware[n],
            inv.nodes.devices[n],
            cluster.idle_gpus(node),
            cluster.free_devices(node),
            inv.nodes.gpu_memory_mib[n],
            cluster.cpu_free_milli(node),
            cluster.memory_free_mib(node),
            std::move(resources)};
}

/// Whether the kind of an empty node alone decides that the task may go there: the task has no group constraint and no list of nodes.
[[nodiscard]] inline bool place_is_free(const Cluster& cluster, TaskId task) {
    const auto& inv = cluster.inventory();
    return inv.memberships(task).empty() &&
           inv.extras[inv.tasks.extras[index(task)]].node_set == Extras::no_node_set;
}

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


/// A node with its key; nodes are tried in ascending order.
using NodeKey = std::pair<std::int64_t, NodeId>;

/// Orders sorted nodes anew by keys that grow by up to a half, equal ones at random. Keys are measured from 0, or from the
/// lowest where that is negative; those beyond 2^58 count as equal.
inline void add_noise(std::vector<NodeKey>& sorted, std::uint64_t seed) {
    if (sorted.empty()) return;
    const Rng rng(seed);
    const auto lowest = static_cast<std::uint64_t>(std::min<std::int64_t>(0, sorted.front().first));
    std::vector<std::tuple<std::uint64_t, std::uint64_t, NodeKey>> noisy;
    noisy.reserve(sorted.size());
    for (const auto& entry : sorted) {
        auto random = rng.split(index(entry.second));
        const auto key = std::min(static_cast<std::uint64_t>(entry.first) - lowest, std::uint64_t{1} << 58);
        const auto grown = key * (16 + random.below(9));
        noisy.emplace_back(grown, random(), entry);
    }
    std::sort(noisy.begin(), noisy.end());
    for (std::size_t i = 0; i < sorted.size(); ++i) sorted[i] = std::get<NodeKey>(noisy[i]);
}


/// The recursive search of one group. Nothing is ever lifted off its old node before its new place is found, so that
/// the steps, one by one, are a valid order of make-before-break moves.
template <class Policies>
class ChainSearch {
    // What joining, ordering and counting one move takes afterwards: 2.8 us in bench_consolidation_quality --deadlines.
    static constexpr double ordering_s_per_move = 3e-6;
    // Destinations are compared in batches, so that a success need not look at all of them; nor are all listed before the first have
    // failed, or the time would grow with the square of the group.
    static constexpr std::size_t batch = 16, first_look = 64;

  public:
    ChainSearch(Workspace& work, const Policies& policies, int depth, Budget& budget, Statistics& stats,
                std::optional<std::uint64_t> noise = {}, bool by_price = false)
        : work_(work), cluster_(work.cluster), policies_(policies), depth_(depth), budget_(budget),
          stats_(stats), noise_(noise), by_price_(by_price), moves_(work, policies, stats) {}

    /// Tries every node of `group` once; leaves the workspace's cluster with all successful moves made.
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
        if (policies_.switches.gather_fractions) gather_fractions(work_, moves_, budget_, found);
        for (const auto& [key, node] : order) {
            if (budget_.exhausted()) break;
            if (!vacate(node, depth_)) continue;
            found.push_back(moves_.close());
            budget_.reserve(ordering_s_per_move * static_cast<double>(found.back().steps.size()));
        }
        // Tidying rides along with moves that vacate a node; by itself it is not worth disturbing anyone.
        if (std::all_of(found.begin(), found.end(),
                        [](const Vacated& v) { return v.chains.node == none<NodeId>; }))
            return {};
        if (policies_.switches.fill_gaps) fill_gaps(work_, moves_, budget_, found);
        return found;
    }

    /// Moves everything off a node if that is worth it; else changes nothing. The account stays open.
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
    /// The same for some of a node's tasks, which it puts in another order.
    /// @param meanwhile what `on_stack` says of the node: `Workspace::passed`, or `may_return` where others may come to it
    bool move_off(NodeId node, std::span<TaskId> tasks, int depth, std::uint8_t meanwhile) {
        ++stats_.nodes_tried;
        const auto& t = cluster_.inventory().tasks;
        std::sort(tasks.begin(), tasks.end(),
                  [&](TaskId a, TaskId b) {  // hardest first: most attempts fail early
                      return std::tuple(-cluster_.gpu_milli(a), -t.cpu_milli[index(a)], a) <
                             std::tuple(-cluster_.gpu_milli(b), -t.cpu_milli[index(b)], b);
                  });
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
    /// From now on, tasks of a node that is to be vacated may go to these empty nodes where they find no other place, as far as the
    /// node is worth it. They must outlive the search.
    void offer(const EmptyNodes& empty) { empty_ = &empty; }
    /// The moves of the node that was vacated last, and whatever else is moved before the account is closed.
    [[nodiscard]] OpenMoves<Policies>& moves() noexcept { return moves_; }

  private:
    struct Candidate {
        std::int64_t cost;
        std::uint32_t victims;   // how many
        std::uint32_t position;  // in the order of the destination ranking
        NodeId node;
        auto operator<=>(const Candidate&) const = default;
    };
    struct Level {  // scratch space of one depth of the recursion
        std::vector<NodeId> candidates;
        boost::container::static_vector<Candidate, batch> chosen;
        boost::container::small_vector<Victim, 32> movable;
        std::vector<Victim> victims;
        bool grouped = false;  // whether group constraints limit where the task may go
    };
    // Nodes by what their own moves cost for what they are worth; equal ones stay in the order of the policy.
    void put_cheapest_first(std::vector<NodeKey>& order) const {
        std::vector<std::tuple<std::int64_t, std::size_t, NodeId>> by_price;
        by_price.reserve(order.size());
        for (const auto& [key, node] : order)
            by_price.emplace_back(
                price_of_moves(static_cast<std::int64_t>(policies_.node_weight(cluster_, node)),
                               cost_of_own_moves(work_, node)),
                by_price.size(), node);
        std::sort(by_price.begin(), by_price.end());
        for (std::size_t i = 0; i < order.size(); ++i)
            order[i] = {std::get<std::int64_t>(by_price[i]), std::get<NodeId>(by_price[i])};
    }
    // Whether the node would be worth so many moves more than it takes so far.
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

    // The shortest nesting that works, since every level of it costs a move, but for tasks that have moved already.
    bool find_place(TaskId task) {
        if (!policies_.switches.shortest_chains_first)
            return eject(task, depth_) || place_on_former_source(task, depth_) || open_for(task);
        for (int depth = 1; depth <= depth_ && is_worth(depth - 1); ++depth)
            if (eject(task, depth) || (depth == 1 && place_on_former_source(task, depth))) return true;
        return open_for(task);
    }
    // Moves a task to the one node that the failed searches for such requests have left out: the node that was being vacated.
    bool place_on_former_source(TaskId task, int depth) {
        if (!policies_.switches.remember_failures) return false;
        const auto source = work_.failed.unseen(cluster_, task, depth);
        return source != none<NodeId> && source != moves_.chains().node && work_.index.is_open(source) &&
               place(task, source);
    }
    bool open_for(TaskId task) {
        if (empty_ == nullptr) return false;
        const bool anywhere = !work_.rule && place_is_free(cluster_, task);
        for (const auto& alike : empty_->kinds)
            for (const auto node : alike) {
                if (cluster_.occupants(node) > 0 || node == work_.on_trial) continue;
                auto chains = moves_.chains();
                chains.opening += moves_.cost_of_opening(node);
                if (!accepts(chains)) return false;
                if (place(task, node)) {
                    work_.forget_failures();  // others fit beside it
                    return true;
                }
                if (anywhere) break;  // nor does it fit on the others of the kind
            }
        return false;
    }

    // Finds a place for a task, moving others out of its way where need be; changes nothing if there is none.
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
        // What a rule of the caller's refuses says nothing of other tasks.
        if (policies_.switches.remember_failures && !work_.rule && !budget_.exhausted())
            work_.failed.add(cluster_, task, depth, moves_.chains().node);
        return false;
    }

    bool place(TaskId task, NodeId node) {
        ++stats_.destinations_scanned;
        return moves_.place(task, node);
    }

    // Makes room for a task on some node by moving others off it.
    bool eject_others(TaskId task, int depth) {
        auto& level = levels_[static_cast<std::size_t>(depth)];
        level.grouped = !cluster_.inventory().memberships(task).empty();
        level.chosen.clear();
        level.candidates.clear();
        bool all = gather(task, level, first_look);
        for (std::size_t i = 0;; ++i) {
            if (i == level.candidates.size() && !all) all = gather(task, level);
            if (i == level.candidates.size()) return make_room_on_chosen(task, depth);
            if (i % 64 == 63 && budget_.exhausted()) return false;
            const auto node = level.candidates[i];
            if (!choose_victims(task, node, depth)) continue;
            const auto cost = cost_of(level.victims);
            if (!takes_cheapest_first(policies_.ejection_rule) || (cost == 0 && level.victims.size() == 1)) {
                if (budget_.exhausted()) return false;
                if (make_room(task, node, depth)) return true;
                continue;
            }
            level.chosen.push_back({cost, static_cast<std::uint32_t>(level.victims.size()),
                                    static_cast<std::uint32_t>(i), node});
            if (level.chosen.size() == batch && make_room_on_chosen(task, depth)) return true;
        }
    }
    // The destinations that may come into question beyond those known, at most so many; false where there may be more.
    bool gather(TaskId task, Level& level, std::size_t most = std::numeric_limits<std::size_t>::max()) {
        work_.start_list();
        for (const auto node : level.candidates) (void)work_.put_on_list(node);
        return !policies_.destination_ranking.visit_full(cluster_, work_.index, task, [&](NodeId node) {
            if (work_.put_on_list(node)) level.candidates.push_back(node);
            return level.candidates.size() == most;
        });
    }
    // Tries the destinations at hand, those that cost the fewest moves first.
    bool make_room_on_chosen(TaskId task, int depth) {
        auto& chosen = levels_[static_cast<std::size_t>(depth)].chosen;
        std::sort(chosen.begin(), chosen.end());
        for (std::size_t c = 0; c < chosen.size() && !budget_.exhausted(); ++c) {
            const auto at = chosen[c].node;
            if (choose_victims(task, at, depth) && make_room(task, at, depth)) return true;
        }
        chosen.clear();
        return false;
    }

    // Whether and which tasks would have to leave `node` for `task`.
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
        return policies_.ejection_rule(cluster_, task, node, {level.movable.data(), level.movable.size()},
                                       level.victims) ||
               refuse(&Refusals::refused_by_victims);
    }

    // Tasks that have moved already move on for nothing.
    std::int64_t cost_of(const std::vector<Victim>& victims) const {
        const auto& costs = cluster_.inventory().tasks.move_cost;
        std::int64_t cost = 0;
        for (const auto& victim : victims)
            if (!victim.moved) cost += costs[index(victim.task)];
        return cost;
    }

    // Moves the chosen victims off `node` until `task` fits.
    bool make_room(TaskId task, NodeId node, int depth) {
        auto& level = levels_[static_cast<std::size_t>(depth)];
        const auto mark = moves_.mark();
        work_.on_stack[index(node)] = Workspace::passed;
        bool fits = false;
        for (std::size_t v = 0; v < level.victims.size() && !fits; ++v) {
            // A node may run empty for a moment, since `task` comes next. One that may be vacated is worth more empty.
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
    std::optional<std::uint64_t> noise_;  // a seed
    const EmptyNodes* empty_ = nullptr;   // that may be opened
    bool by_price_;  // nodes whose moves cost the least for what they are worth come first
    std::array<Level, most_depth + 1> levels_;
    OpenMoves<Policies> moves_;
};

}  // namespace gpusched::consolidation::detail
