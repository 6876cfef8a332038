// SPDX-License-Identifier: Apache-2.0
// The exact search of tiny groups: all sets of nodes, and all placements of the tasks that move.
#include <gpusched/allocation/concepts.hpp>
#include <gpusched/allocation/gpu_pickers.hpp>
#include <gpusched/config.hpp>
#include <gpusched/consolidation/rounds.hpp>
#include <gpusched/model/feasibility.hpp>

#include <bit>
#include <tuple>

namespace gpusched::consolidation::detail {

class ExactSearch {
  public:
    ExactSearch(const Cluster& cluster, const Scope& scope, std::span<const NodeId> group,
                std::span<const std::int64_t> weights, const Options& options, Budget& budget)
        : snapshot_(cluster), scope_(scope), group_(group), weights_(weights), options_(options),
          opens_(!scope.may_open.empty()), budget_(budget), rule_(options.rule) {}

    std::vector<Vacated> run(std::int64_t known_gain, std::int64_t known_cost) {
        if (snapshot_.node_slots() > 1000) return {};
        for (std::size_t i = 0; i < group_.size(); ++i) {
            const auto node = group_[i];
            if (scope_.may_vacate[index(node)]) sources_.push_back(i);
            if (scope_.receives(node)) receivers_.push_back(node);
            for (const auto task : snapshot_.tasks_on(node))
                if (scope_.movable[index(task)]) tasks_.push_back(task);
        }
        if (sources_.empty() || sources_.size() > 12 || tasks_.size() > 20) return {};
        put_hardest_first(snapshot_, tasks_);
        const auto& t = snapshot_.inventory().tasks;
        cost_of_opening_.assign(snapshot_.node_slots(), 0);
        for (std::size_t i = 0; i < group_.size(); ++i)
            if (scope_.opens(group_[i]))
                cost_of_opening_[index(group_[i])] = opening_milli(weights_[i], scope_.open_price);
        best_ = worth(known_gain, known_cost);
        struct Goal {
            Worth at_most;  // if only tasks of its nodes move
            std::int64_t gain, cost;
            std::uint32_t nodes;  // bits over sources_
        };
        std::vector<std::int64_t> costs(sources_.size());
        for (std::size_t s = 0; s < sources_.size(); ++s)
            for (const auto task : tasks_)
                if (snapshot_.node_of(task) == group_[sources_[s]]) costs[s] += t.move_cost[index(task)];
        std::vector<Goal> goals;
        for (std::uint32_t nodes = 1; nodes < 1u << sources_.size(); ++nodes) {
            std::int64_t gain = 0, cost = 0;
            for (std::size_t s = 0; s < sources_.size(); ++s)
                if ((nodes >> s & 1) != 0) {
                    gain += weights_[sources_[s]];
                    cost += costs[s];
                }
            if (worth(gain, cost) > best_) goals.push_back({worth(gain, cost), gain, cost, nodes});
        }
        std::sort(goals.begin(), goals.end(), [](const Goal& a, const Goal& b) {
            return std::tuple(b.at_most, std::popcount(a.nodes), a.nodes) <
                   std::tuple(a.at_most, std::popcount(b.nodes), b.nodes);
        });
        cluster_ = snapshot_;
        cluster_.commit();
        for (const auto& goal : goals) {
            if (goal.at_most <= best_) break;
            gain_ = goal.gain;
            cost_ = goal.cost;
            opening_ = 0;
            vacate(goal.nodes);
        }
        return std::move(found_);
    }

  private:
    using Worth = std::pair<std::int64_t, std::int64_t>;  // value, then negative cost
    [[nodiscard]] Worth worth(std::int64_t gain, std::int64_t cost, std::int64_t opening = 0) const {
        return {value_milli(gain, cost, options_.price) - opening, -cost};
    }

    bool vacate(std::uint32_t nodes) {
        closed_.assign(snapshot_.node_slots(), 0);
        for (const auto node : snapshot_.nodes()) closed_[index(node)] = !scope_.receives(node);
        goal_.clear();
        for (std::size_t s = 0; s < sources_.size(); ++s)
            if ((nodes >> s & 1) != 0) {
                goal_.push_back(sources_[s]);
                closed_[index(group_[sources_[s]])] = 1;
            }
        std::vector<TaskId> others;
        lifted_.clear();
        for (const auto task : tasks_) {
            const auto leaves = std::any_of(goal_.begin(), goal_.end(), [&](std::size_t s) {
                return group_[s] == snapshot_.node_of(task);
            });
            (leaves ? lifted_ : others).push_back(task);
        }
        for (others_ = 0; others_ <= std::min<std::size_t>(3, others.size()); ++others_)
            if (lift(others, 0, others_)) return true;
        return false;
    }

    // Removes `extra` more tasks in all ways, and tries to place all removed tasks again.
    bool lift(const std::vector<TaskId>& others, std::size_t from, std::size_t extra) {
        if (extra == 0) {
            const auto mark = cluster_.checkpoint();
            auto order = lifted_;
            put_hardest_first(snapshot_, order);
            for (const auto task : order) {
                if (rule_) rule_.leave(cluster_, task, snapshot_.node_of(task));
                cluster_.remove(task);
            }
            const bool done = put_back(order, 0);
            cluster_.rollback(mark);
            if (rule_)
                for (const auto task : order) rule_.enter(cluster_, task, snapshot_.node_of(task));
            return done;
        }
        for (auto i = from; i + extra <= others.size(); ++i) {
            const auto cost = snapshot_.inventory().tasks.move_cost[index(others[i])];
            if (worth(gain_, cost_ + cost) <= best_) continue;
            lifted_.push_back(others[i]);
            cost_ += cost;
            const bool done = lift(others, i + 1, extra - 1);
            cost_ -= cost;
            lifted_.pop_back();
            if (done) return true;
            if (trials_ > most_trials) return false;
        }
        return false;
    }

    bool put_back(const std::vector<TaskId>& order, std::size_t next) {
        if (next == order.size()) return in_waves(order);
        const auto task = order[next];
        for (const auto node : receivers_) {
            if (++trials_ > most_trials || (trials_ % 256 == 0 && budget_.exhausted())) return false;
            if (closed_[index(node)] || node == snapshot_.node_of(task)) continue;
            const auto opening = opens_ && cluster_.occupants(node) == 0 ? cost_of_opening_[index(node)] : 0;
            if (opening > 0 && worth(gain_, cost_, opening_ + opening) <= best_) continue;
            if (find_obstacle(cluster_, task, node) != Obstacle::none) continue;
            if (rule_ && !rule_.allows(cluster_, task, node)) continue;
            cluster_.assign(task, node,
                            allocation::pick_gpus(allocation::TightestGpu{}, cluster_, task, node));
            opening_ += opening;
            rule_.enter(cluster_, task, node);
            const bool done = put_back(order, next + 1);
            rule_.leave(cluster_, task, node);
            opening_ -= opening;
            cluster_.undo();
            if (done) return true;
        }
        return false;
    }

    // Accepts the placement if its moves can be ordered into waves and its value is higher.
    bool in_waves(const std::vector<TaskId>& order) {
        trials_ += 100;
        std::vector<Step> steps;
        for (const auto task : order)
            steps.push_back(
                {task, snapshot_.node_of(task), cluster_.node_of(task), cluster_.gpus_of(task), 0});
        const auto waves = order_into_waves(snapshot_, steps, closed_, options_, scope_.may_vacate);
        if (waves.dropped_chains > 0 || worth(gain_, cost_, opening_) <= best_) return false;
        best_ = worth(gain_, cost_, opening_);
        found_.clear();
        for (const auto s : goal_) found_.push_back({{.node = group_[s], .gain = weights_[s]}, {}});
        // All steps go with the first node: only together are they possible.
        auto& first = found_.front();
        first.chains.tasks = static_cast<std::int64_t>(lifted_.size() - others_);
        for (const auto& move : waves.moves) {
            first.steps.push_back({move.task, move.from, move.to, move.gpus, 0});
            ++first.chains.moves;
        }
        first.chains.cost = cost_;
        first.chains.opening = opening_;
        return opening_ == 0;  // otherwise another placement may open less
    }

    static constexpr std::int64_t most_trials = 300'000;
    const Cluster& snapshot_;
    const Scope& scope_;
    std::span<const NodeId> group_;
    std::span<const std::int64_t> weights_;
    const Options& options_;
    bool opens_;
    Budget& budget_;
    AnyPlacementRule rule_;  // in the state of `cluster_`
    Cluster cluster_;
    std::vector<std::size_t> sources_, goal_;  // positions in group_
    std::vector<NodeId> receivers_;
    std::vector<TaskId> tasks_, lifted_;
    std::vector<std::uint8_t> closed_;
    std::vector<Vacated> found_;
    std::size_t others_ = 0;                     // tasks in lifted_ that are not on a node of the goal
    std::int64_t gain_ = 0, cost_ = 0;           // of the current goal, with the lifted tasks of other nodes
    std::int64_t opening_ = 0;                   // cost of the nodes that the current placement opens
    std::vector<std::int64_t> cost_of_opening_;  // by node
    Worth best_;
    std::int64_t trials_ = 0;
};

GPUSCHED_EXPORT std::vector<Vacated> exact_search(const Cluster& cluster, const Scope& scope,
                                                  std::span<const NodeId> group,
                                                  std::span<const std::int64_t> weights,
                                                  std::int64_t known_gain, std::int64_t known_cost,
                                                  const Options& options, Budget& budget) {
    return ExactSearch(cluster, scope, group, weights, options, budget).run(known_gain, known_cost);
}

}  // namespace gpusched::consolidation::detail
