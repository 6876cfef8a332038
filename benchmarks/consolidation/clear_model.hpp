// SPDX-License-Identifier: Apache-2.0
// Clears given nodes with a mixed-integer program: as many of their GPUs as possible, then with the fewest
// moves.
#pragma once

#include "../support/timing.hpp"

#include <gpusched/consolidation/scope.hpp>
#include <gpusched/core/errors.hpp>
#include <gpusched/milp/consolidation.hpp>
#include <gpusched/milp/solver.hpp>
#include <gpusched/model/cluster.hpp>
#include <gpusched/model/plan.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace gpusched::bench {

/// Sums over the programs of all pools.
struct ClearedByModel {
    std::int64_t vacated_nodes = 0, vacated_gpus = 0, moves = 0;
    std::int64_t gpus_at_most = 0;  ///< no plan clears more
    int programs = 0;
    int whole = 0;             ///< programs with all nodes of their pool
    int solved = 0;            ///< programs solved to optimality
    std::int64_t columns = 0;  ///< of all programs
    double solve_s = 0, solve_processor_s = 0;
};

/// The programs decide on the final state and ignore the order of the moves, as `milp::consolidation` does.
/// So no plan is better than their optimum. Nodes that some task can move between form a pool, and each pool
/// has its own program. If a pool has more nodes than a program may have, the program takes the nodes to
/// clear, those of the plan, and then those with the most idle GPUs; tasks on the other nodes stay.
class ClearModel {
  public:
    /// @param clear nodes with tasks that can all leave
    /// @param plan the start of the search
    ClearModel(const ClusterSpec& spec, const Cluster& cluster, std::span<const NodeId> clear,
               const Plan& plan)
        : spec_(spec), cluster_(cluster), cleared_(cluster.node_slots()) {
        for (const auto node : clear) cleared_[index(node)] = true;
        involved_ = cleared_;
        for (const auto& move : plan.moves) {
            last_[cluster.name(move.task)] = cluster.name(move.to);
            involved_[index(move.from)] = involved_[index(move.to)] = true;
        }
    }

    /// @param limit_s of each program
    /// @param most_nodes of each program
    [[nodiscard]] ClearedByModel solve(double limit_s, std::size_t most_nodes) const {
        ClearedByModel sum;
        for (auto pool : consolidation::components(cluster_)) {
            if (std::none_of(pool.begin(), pool.end(), [&](NodeId node) { return cleared_[index(node)]; }))
                continue;
            const bool whole = pool.size() <= most_nodes;
            if (!whole) pool = most_useful(std::move(pool), most_nodes);
            solve(pool, whole, limit_s, sum);
        }
        return sum;
    }

  private:
    [[nodiscard]] std::vector<NodeId> most_useful(std::vector<NodeId> pool, std::size_t most) const {
        const auto rank = [&](NodeId node) {
            return std::tuple(!involved_[index(node)], -gpu_count(cluster_.idle_gpus(node)), node);
        };
        std::erase_if(pool, [&](NodeId node) { return cluster_.occupants(node) == 0; });
        std::sort(pool.begin(), pool.end(), [&](NodeId a, NodeId b) { return rank(a) < rank(b); });
        const auto needed = static_cast<std::size_t>(
            std::count_if(pool.begin(), pool.end(), [&](NodeId node) { return involved_[index(node)]; }));
        pool.resize(std::min(pool.size(), std::max(needed, most)));
        std::sort(pool.begin(), pool.end());
        return pool;
    }
    [[nodiscard]] Cluster part(const std::vector<NodeId>& pool) const {
        std::vector<bool> within(cluster_.node_slots());
        for (const auto node : pool) within[index(node)] = true;
        ClusterSpec spec;
        spec.now = spec_.now;
        spec.label_levels = spec_.label_levels;
        spec.jobs = spec_.jobs;
        for (const auto& node : spec_.nodes)
            if (within[index(cluster_.find_node(node.name))]) spec.nodes.push_back(node);
        for (const auto& task : spec_.tasks) {
            const auto at = cluster_.node_of(cluster_.find_task(task.name));
            if (at != none<NodeId> && within[index(at)]) spec.tasks.push_back(task);
        }
        return Cluster::build(spec);
    }

    void solve(const std::vector<NodeId>& pool, bool whole, double limit_s, ClearedByModel& sum) const {
        const auto cluster = part(pool);
        auto model = milp::consolidation(cluster, {.form = milp::ConsolidationForm::classes});
        const auto &x = model.index("x"), &y = model.index("y");
        const auto column = [](int at) { return static_cast<std::size_t>(at); };
        std::int64_t gpus = 0;
        for (std::size_t j = 0; j < model.nodes.size(); ++j) {
            const auto node = model.nodes[j];
            if (!clears(cluster, node)) {
                model.objective[column(y(j))] = 0;
                model.column_lower[column(y(j))] = 1;
                continue;
            }
            // No task may move to a node that is to be cleared.
            const auto count = gpu_count(cluster.healthy_gpus(node));
            gpus += count;
            model.objective[column(y(j))] = count;
            for (std::size_t k = 0; k < model.classes.size(); ++k) {
                if (x(k, j) < 0) continue;
                const auto& members = model.classes[k];
                model.column_upper[column(x(k, j))] =
                    static_cast<double>(std::count_if(members.begin(), members.end(), [&](TaskId task) {
                        return cluster.node_of(task) == node;
                    }));
            }
        }
        milp::SolveOptions options{.time_limit = limit_s};
        try {
            options.start = model.encode(planned(cluster, model.home));
        } catch (const InvalidInput&) {
            options.start = model.encode(model.home);  // the plan uses something that the model leaves out
        }
        milp::Solution solution;
        const auto start = processor_s();
        sum.solve_s += seconds([&] { solution = milp::solve(model, options); });
        sum.solve_processor_s += processor_s() - start;
        sum.columns += model.columns();
        ++sum.programs;
        sum.whole += whole;
        sum.solved += solution.status == milp::Status::optimal;
        // All moves together weigh less than one GPU.
        sum.gpus_at_most +=
            whole && std::isfinite(solution.bound)
                ? gpus - std::max<std::int64_t>(0, std::llround(std::floor(solution.bound + 1e-6)))
                : gpus;
        if (!solution.has_solution()) return;
        const auto placement = model.decode(solution.x);
        sum.moves += model.moves(placement);
        std::vector<bool> used(cluster.node_slots());
        for (const auto& members : model.classes)
            for (const auto task : members) used[index(placement[index(task)])] = true;
        for (const auto task : model.fixed) used[index(placement[index(task)])] = true;
        for (const auto node : model.nodes)
            if (clears(cluster, node) && !used[index(node)]) {
                ++sum.vacated_nodes;
                sum.vacated_gpus += gpu_count(cluster.healthy_gpus(node));
            }
    }
    /// @param part that the node belongs to
    [[nodiscard]] bool clears(const Cluster& part, NodeId node) const {
        return cleared_[index(cluster_.find_node(part.name(node)))];
    }
    [[nodiscard]] std::vector<NodeId> planned(const Cluster& part, std::vector<NodeId> placement) const {
        for (const auto task : part.tasks())
            if (const auto to = last_.find(part.name(task)); to != last_.end())
                placement[index(task)] = part.find_node(to->second);
        return placement;
    }

    const ClusterSpec& spec_;
    const Cluster& cluster_;
    std::vector<bool> cleared_, involved_;
    std::map<std::string, std::string> last_;  // by task: its node after the plan
};

}  // namespace gpusched::bench
