// ChainSearch: vacates nodes of one group by ejection chains, on a private copy of the cluster.
#pragma once

#include <gpusched/consolidation/concepts.hpp>
#include <gpusched/consolidation/detail/failed_requests.hpp>
#include <gpusched/consolidation/detail/joiner.hpp>
#include <gpusched/consolidation/detail/pick_gpus.hpp>
#include <gpusched/consolidation/result.hpp>
#include <gpusched/consolidation/wave_order.hpp>
#include <gpusched/core/budget.hpp>

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

namespace gpusched::consolidation::detail {

/// What a search works on: its own copy of the snapshot and the indices over it.
struct Workspace {
    Workspace(const Cluster& before, const Scope& s)
        : snapshot(before), cluster(before), scope(s), index(cluster), on_stack(cluster.node_count()) {}
    Workspace(const Workspace&) = delete;
    Workspace& operator=(const Workspace&) = delete;

    const Cluster& snapshot;
    Cluster cluster;
    const Scope& scope;
    FreeIndex index;
    std::vector<std::uint8_t> on_stack;  // nodes that a chain under construction runs through
    FailedRequests failed;
    std::size_t applied = 0;  // how many of the joined steps the cluster has seen
};

/// The recursive search of one group. Nothing is ever lifted off its old node before its new place is found, so that
/// the steps, one by one, are a valid order of make-before-break moves.
template <class Policies>
class ChainSearch {
  public:
    ChainSearch(Workspace& work, const Policies& policies, int depth, Budget& budget, Statistics& stats)
        : work_(work), cluster_(work.cluster), policies_(policies), depth_(depth), budget_(budget),
          stats_(stats) {}

    /// Tries every node of `group` once; leaves the workspace's cluster with all successful moves made.
    std::vector<Vacated> run(std::span<const NodeId> group, std::span<const std::uint8_t> vacated) {
        work_.index.reset(group, work_.scope);
        work_.failed.clear();
        std::vector<std::pair<std::int64_t, NodeId>> order;
        for (const auto node : group) {
            if (vacated[index(node)])
                work_.index.close(node);
            else if (work_.scope.may_vacate[index(node)])
                order.emplace_back(static_cast<std::int64_t>(policies_.node_order(cluster_, node)), node);
        }
        std::sort(order.begin(), order.end());
        std::vector<Vacated> found;
        if (policies_.fill_gaps) pack_fractions(found);
        for (const auto& [key, node] : order) {
            if (budget_.exhausted()) break;
            if (vacate(node)) found.push_back(take(node));
        }
        // Tidying rides along with moves that vacate a node; by itself it is not worth disturbing anyone.
        if (std::all_of(found.begin(), found.end(),
                        [](const Vacated& v) { return v.chains.node == none<NodeId>; }))
            return {};
        if (policies_.fill_gaps) fill_gaps(found);
        return found;
    }

  private:
    bool vacate(NodeId node) {
        ++stats_.nodes_tried;
        const auto& t = cluster_.inventory().tasks;
        std::vector<TaskId> tasks;
        for (const auto task : cluster_.tasks_on(node))
            if (!t.daemon[index(task)]) tasks.push_back(task);
        std::sort(tasks.begin(), tasks.end(),
                  [&](TaskId a, TaskId b) {  // hardest first: most attempts fail early
                      return std::tuple(-cluster_.gpu_milli(a), -t.cpu_milli[index(a)], a) <
                             std::tuple(-cluster_.gpu_milli(b), -t.cpu_milli[index(b)], b);
                  });
        work_.index.close(node);
        work_.on_stack[index(node)] = 1;
        const bool all = std::all_of(tasks.begin(), tasks.end(), [&](TaskId task) {
            return find_place(task) && policies_.acceptance(describe(node, tasks.size()));
        });
        work_.on_stack[index(node)] = 0;
        if (all) return true;
        undo_to(0);
        work_.index.open(node);
        return false;
    }

    // The shortest nesting that works, since every level of it costs moves.
    bool find_place(TaskId task) {
        for (int depth = policies_.shortest_chains_first ? 1 : depth_; depth <= depth_; ++depth) {
            const auto mark = steps_.size();
            if (!eject(task, depth)) continue;
            std::int64_t moves = 0;
            for (auto i = mark; i < steps_.size(); ++i)
                moves += work_.snapshot.node_of(steps_[i].task) == steps_[i].from;
            if (moves <= policies_.longest_chain) return true;
            undo_to(mark);
        }
        return false;
    }

    // Finds a place for a task, moving others out of its way where need be; changes nothing if there is none.
    bool eject(TaskId task, int depth) {
        ++stats_.eject_calls;
        if (work_.failed.dominates(cluster_, task, depth)) {
            ++stats_.requests_dominated;
            return false;
        }
        if (policies_.destinations.visit(cluster_, work_.index, task,
                                         [&](NodeId node) { return place(task, node); }))
            return true;
        if (depth > 1 && eject_others(task, depth)) return true;
        if (!budget_.exhausted()) work_.failed.add(cluster_, task, depth);
        return false;
    }

    bool place(TaskId task, NodeId node) {
        ++stats_.destinations_scanned;
        if (work_.on_stack[index(node)] || find_obstacle(cluster_, task, node) != Obstacle::none)
            return false;
        const auto gpus = pick_gpus(cluster_, task, node);
        if (!gpus) return false;
        const auto from = cluster_.node_of(task);
        cluster_.assign(task, node, *gpus);
        work_.index.refresh(from);
        work_.index.refresh(node);
        steps_.push_back({task, from, node, *gpus, 0});
        return true;
    }

    // Makes room for a task on some node by moving others off it.
    bool eject_others(TaskId task, int depth) {
        auto& level = levels_[static_cast<std::size_t>(depth)];
        level.candidates.clear();
        policies_.destinations.visit_full(cluster_, work_.index, task, [&](NodeId node) {
            level.candidates.push_back(node);
            return false;
        });
        // In batches, so that a success need not look at all of them.
        constexpr std::size_t batch = 16;
        level.chosen.clear();
        for (std::size_t i = 0; i < level.candidates.size(); ++i) {
            if (i % 64 == 63 && budget_.exhausted()) return false;
            const auto node = level.candidates[i];
            if (choose_victims(task, node, depth)) {
                const auto cost = cost_of(level.victims);
                if (!cheapest_first || cost == std::pair{0, 1}) {
                    if (make_room(task, node, depth)) return true;
                } else {
                    level.chosen.push_back({cost, i, node});
                }
            }
            if (level.chosen.size() < batch && i + 1 < level.candidates.size()) continue;
            std::sort(level.chosen.begin(), level.chosen.end());
            for (std::size_t c = 0; c < level.chosen.size(); ++c) {
                if (budget_.exhausted()) return false;
                const auto at = level.chosen[c].node;
                if (choose_victims(task, at, depth) && make_room(task, at, depth)) return true;
            }
            level.chosen.clear();
        }
        return false;
    }

    // Whether and which tasks would have to leave `node` for `task`.
    bool choose_victims(TaskId task, NodeId node, int depth) {
        ++stats_.destinations_scanned;
        const auto& inv = cluster_.inventory();
        if (work_.on_stack[index(node)]) return false;
        if (!inv.eligible(inv.tasks.requirement[index(task)], inv.nodes.node_class[index(node)]))
            return false;
        if (find_group_obstacle(cluster_, task, node) != Obstacle::none) return false;
        auto& level = levels_[static_cast<std::size_t>(depth)];
        level.movable.clear();
        for (const auto other : cluster_.tasks_on(node))
            if (work_.scope.movable[index(other)] && !work_.failed.dominates(cluster_, other, depth - 1))
                level.movable.push_back({other, work_.snapshot.node_of(other) != node});
        return !level.movable.empty() &&
               policies_.ejection(cluster_, task, node, level.movable, level.victims);
    }

    // Further moves, then victims.
    static std::pair<int, int> cost_of(const std::vector<Victim>& victims) {
        std::pair cost{0, static_cast<int>(victims.size())};
        for (const auto& victim : victims) cost.first += !victim.moved;
        return cost;
    }

    // Moves the chosen victims off `node` until `task` fits.
    bool make_room(TaskId task, NodeId node, int depth) {
        auto& level = levels_[static_cast<std::size_t>(depth)];
        const auto mark = steps_.size();
        work_.on_stack[index(node)] = 1;
        bool fits = false;
        for (std::size_t v = 0; v < level.victims.size() && !fits; ++v) {
            // The node must never run empty: nothing moves onto an empty node.
            const bool placed = cluster_.occupants(node) > 1 && eject(level.victims[v].task, depth - 1);
            if (!placed && !may_skip) break;
            fits = placed && find_obstacle(cluster_, task, node) == Obstacle::none;
        }
        work_.on_stack[index(node)] = 0;
        if (fits && place(task, node)) return true;
        undo_to(mark);
        return false;
    }

    // Gathers fractions on fewer GPUs: least used first, a GPU is cleared if all that it holds fits on other partly used
    // ones.
    void pack_fractions(std::vector<Vacated>& found) {
        struct Card {
            int used, gpu;
            NodeId node;
        };
        std::vector<Card> cards;
        for (const auto node : work_.index.receivers())
            for (int g = 0; g < cluster_.gpu_count(node); ++g)
                if (const int free = cluster_.gpu_free_milli(node, g); free > 0 && free < whole_gpu_milli)
                    cards.push_back({whole_gpu_milli - free, g, node});
        std::sort(cards.begin(), cards.end(), [](const Card& a, const Card& b) {
            return std::tuple(a.used, a.node, a.gpu) < std::tuple(b.used, b.node, b.gpu);
        });
        for (const auto& card : cards) {
            if (budget_.exhausted()) return;
            std::vector<TaskId> tasks;
            bool movable = work_.index.is_open(card.node);
            for (const auto task : cluster_.tasks_on(card.node))
                if ((cluster_.gpus_of(task) & gpu_bit(card.gpu)) != 0) {
                    tasks.push_back(task);
                    movable = movable && work_.scope.movable[index(task)];
                }
            if (!movable || tasks.empty() || cluster_.occupants(card.node) <= static_cast<int>(tasks.size()))
                continue;
            const bool all = std::all_of(tasks.begin(), tasks.end(), [&](TaskId task) {
                const auto share = cluster_.inventory().tasks.gpu_share_milli[index(task)];
                for (int tier = 0; tier < FreeIndex::tiers; ++tier)
                    if (work_.index.visit_partial(
                            tier, share, [&](NodeId node) { return node != card.node && place(task, node); }))
                        return true;
                return false;
            });
            if (all)
                found.push_back(take(none<NodeId>));
            else
                undo_to(0);
        }
    }

    // Fills nodes that are nearly full with tasks from others that are not: idle GPUs gather on fewer nodes. Tasks that
    // have moved already go first, since sending them elsewhere costs nothing.
    void fill_gaps(std::vector<Vacated>& found) {
        std::vector<std::pair<int, NodeId>> gaps;
        for (const auto node : work_.index.receivers())
            if (const int idle = gpu_count(cluster_.idle_gpus(node)); work_.index.is_open(node) && idle > 0)
                gaps.emplace_back(idle, node);
        std::sort(gaps.begin(), gaps.end());
        const auto fill = [&](NodeId node, bool moved) {
            for (auto giver = gaps.rbegin(); giver != gaps.rend(); ++giver) {
                const auto idle = gpu_count(cluster_.idle_gpus(node));
                const auto from = giver->second;
                if (idle == 0) return;
                if (from == node || cluster_.occupants(from) < 2 ||
                    gpu_count(cluster_.idle_gpus(from)) < idle)
                    continue;
                for (const auto task : cluster_.tasks_on(from)) {
                    if (!work_.scope.movable[index(task)] || (work_.snapshot.node_of(task) != from) != moved)
                        continue;
                    if (cluster_.gpu_milli(task) != std::int64_t{idle} * whole_gpu_milli ||
                        !place(task, node))
                        continue;
                    found.push_back(take(none<NodeId>));
                    return;
                }
            }
        };
        for (const bool moved : {true, false})
            for (const auto& [idle, node] : gaps) {
                if (budget_.exhausted()) return;
                fill(node, moved);
            }
    }

    void undo_to(std::size_t mark) {
        while (steps_.size() > mark) {
            const auto step = steps_.back();
            steps_.pop_back();
            cluster_.undo();
            work_.index.refresh(step.to);
            work_.index.refresh(step.from);
        }
    }

    ChainSet describe(NodeId node, std::size_t pods) const {
        ChainSet set{
            .node = node,
            .gain = node != none<NodeId> ? static_cast<std::int64_t>(policies_.weight(cluster_, node)) : 0,
            .pods = static_cast<std::int64_t>(pods)};
        for (const auto& step : steps_) {
            if (work_.snapshot.node_of(step.task) != step.from) continue;  // it moves in any case
            ++set.moves;
            set.cost += cluster_.inventory().tasks.move_cost[index(step.task)];
        }
        return set;
    }
    Vacated take(NodeId node, std::size_t pods = 0) {
        Vacated vacated{describe(node, pods), std::move(steps_)};
        steps_.clear();
        return vacated;
    }

    Workspace& work_;
    Cluster& cluster_;
    const Policies& policies_;
    int depth_;
    Budget& budget_;
    Statistics& stats_;
    static constexpr bool may_skip = requires(const Policies& p) { p.ejection.may_skip_victims; };
    static constexpr bool cheapest_first = requires(const Policies& p) { p.ejection.cheapest_first; };
    struct Candidate {
        std::pair<int, int> cost;
        std::size_t position;  // in the order of the destination ranking
        NodeId node;
        auto operator<=>(const Candidate&) const = default;
    };
    struct Level {  // scratch space of one depth of the recursion
        std::vector<NodeId> candidates;
        std::vector<Candidate> chosen;
        std::vector<Victim> movable, victims;
    };
    std::array<Level, 17> levels_;
    std::vector<Step> steps_;  // since the last vacated node
};

}  // namespace gpusched::consolidation::detail
