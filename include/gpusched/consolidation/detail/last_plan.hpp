// SPDX-License-Identifier: Apache-2.0
// LastPlan: the moves of an earlier plan, and those of them that are still possible and still vacate nodes.
#pragma once

#include <gpusched/consolidation/rounds.hpp>
#include <gpusched/consolidation/workspace.hpp>
#include <gpusched/consolidation/options.hpp>
#include <gpusched/model/cluster.hpp>
#include <gpusched/model/plan.hpp>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

namespace gpusched::consolidation::detail {

/// The moves of an earlier plan whose task and destination still exist, in its order.
struct LastPlan {
    struct Planned {
        TaskId task;
        NodeId to;
        GpuMask gpus;
    };
    std::vector<Planned> moves{};

    LastPlan(const Cluster& cluster, const PlanSpec& plan) {
        const auto& inv = cluster.inventory();
        for (const auto& move : plan.moves) {
            const auto task = inv.tasks.names.find(move.task);
            const auto to = inv.nodes.names.find(move.to);
            if (!task || !to) continue;
            GpuMask gpus = 0;
            for (const auto gpu : move.gpus)
                if (gpu >= 0 && gpu < max_gpus_per_node) gpus |= gpu_bit(gpu);
            moves.push_back({make_id<TaskId>(*task), make_id<NodeId>(*to), gpus});
        }
    }
};

/// Makes the moves of an earlier plan again.
template <class Policies>
class Repetition {
  public:
    Repetition(Workspace& work, const Policies& policies, Statistics& stats)
        : work_(work), policies_(policies), moves_(work, policies, stats) {}

    /// Makes every move that is possible, in turns, because one may make room for another; then sends tasks home again whose node is not
    /// vacated for it. The workspace's cluster is left with these moves made.
    /// @return the moves in parts that share no node, each with the nodes that it vacates behind it; parts that the acceptance refuses are
    ///     left out
    std::vector<std::vector<Vacated>> run(const LastPlan& last, std::span<const NodeId> nodes) {
        work_.index.reset(work_.cluster, nodes, work_.scope);
        auto waiting = last.moves;
        for (bool more = true; more && !waiting.empty();) {
            const auto before = waiting.size();
            std::erase_if(waiting, [&](const LastPlan::Planned& move) { return make(move); });
            more = waiting.size() < before;
        }
        // A task that goes home may make room for another one that does.
        for (bool more = true; more;) {
            more = false;
            for (const auto& move : last.moves)
                more = (is_away(move.task) && !is_vacated(work_.snapshot.node_of(move.task)) &&
                        moves_.send_home(move.task, false)) ||
                       more;
        }
        return parts();
    }

  private:
    [[nodiscard]] bool is_away(TaskId task) const {
        return work_.snapshot.is_placed(task) && work_.cluster.node_of(task) != work_.snapshot.node_of(task);
    }
    [[nodiscard]] bool is_vacated(NodeId node) const {
        return work_.scope.may_vacate[index(node)] && work_.snapshot.occupants(node) > 0 &&
               work_.cluster.occupants(node) == 0;
    }
    /// @return whether the move needs no further try
    bool make(const LastPlan::Planned& move) {
        const auto& cluster = work_.cluster;
        if (!cluster.is_placed(move.task) || !work_.scope.movable[index(move.task)] ||
            cluster.node_of(move.task) == move.to)
            return true;
        if (!work_.index.is_open(move.to) && !work_.scope.opens(move.to)) return true;
        return moves_.place(move.task, move.to, move.gpus);
    }

    std::vector<std::vector<Vacated>> parts() {
        const auto& cluster = work_.cluster;
        const auto steps = moves_.steps();
        // Nodes that moves join, by union and find.
        std::vector<std::uint32_t> root(cluster.node_slots());
        std::iota(root.begin(), root.end(), 0u);
        const auto find = [&](NodeId node) {
            auto at = static_cast<std::uint32_t>(index(node));
            while (root[at] != at) at = root[at] = root[root[at]];
            return at;
        };
        for (const auto& step : steps) root[find(step.from)] = find(step.to);
        std::vector<std::uint32_t> of(cluster.node_slots(), none_yet);
        std::vector<std::vector<Vacated>> found;
        const auto part_of = [&](NodeId node) -> std::vector<Vacated>& {
            auto& at = of[find(node)];
            if (at == none_yet) {
                at = static_cast<std::uint32_t>(found.size());
                found.push_back({Vacated{}});
            }
            return found[at];
        };
        for (const auto& step : steps) part_of(step.to).front().steps.push_back(step);
        std::vector<std::uint8_t> seen(cluster.task_slots()), forbidden(found.size());
        for (const auto& step : steps) {
            auto& part = part_of(step.from);
            const auto home = work_.snapshot.node_of(step.task);
            if (work_.snapshot.occupants(step.from) > 0 && cluster.occupants(step.from) == 0 &&
                !is_vacated(step.from))
                forbidden[of[find(step.from)]] = 1;  // it must stay in use
            if (std::exchange(seen[index(step.task)], std::uint8_t{1}) || !is_away(step.task)) continue;
            auto& sum = part.front().chains;
            ++sum.moves;
            sum.cost += cluster.inventory().tasks.move_cost[index(step.task)];
            if (is_vacated(home)) ++sum.tasks;
            for (const auto node : {home, cluster.node_of(step.task)}) {
                const bool known = std::any_of(part.begin(), part.end(), [&](const Vacated& other) {
                    return other.chains.node == node;
                });
                if (known) continue;
                if (is_vacated(node)) {
                    Vacated vacated;
                    vacated.chains.node = node;
                    vacated.chains.gain =
                        static_cast<std::int64_t>(policies_.node_weight(work_.snapshot, node));
                    sum.gain += vacated.chains.gain;
                    part.push_back(std::move(vacated));
                } else if (work_.scope.opens(node) && cluster.occupants(node) > 0 && node != home) {
                    opened_.push_back(node);
                }
            }
        }
        std::sort(opened_.begin(), opened_.end());
        opened_.erase(std::unique(opened_.begin(), opened_.end()), opened_.end());
        for (const auto node : opened_) {
            auto& sum = part_of(node).front().chains;
            ++sum.opened;
            sum.opening += moves_.cost_of_opening(node);
        }
        std::size_t kept = 0;
        for (std::size_t p = 0; p < found.size(); ++p)
            if (!forbidden[p] && accepted(found[p])) std::swap(found[kept++], found[p]);
        found.resize(kept);
        // The first entry has the moves; what a single node takes is told of that node.
        for (auto& part : found)
            if (part.size() == 2) {
                part[0].chains.node = part[1].chains.node;
                part.pop_back();
            } else {
                for (std::size_t i = 1; i < part.size(); ++i) part[i].chains.gain = 0;
            }
        return found;
    }
    /// Whether a part is worth it: as the acceptance judges one node, with as many other tasks as the part moves per node.
    [[nodiscard]] bool accepted(const std::vector<Vacated>& part) const {
        const auto nodes = static_cast<std::int64_t>(part.size()) - 1;
        if (nodes == 0) return false;
        auto mean = part.front().chains;
        mean.node = part[1].chains.node;
        mean.moves = mean.tasks + (mean.moves - mean.tasks + nodes - 1) / nodes;
        return policies_.acceptance(mean);
    }

    static constexpr std::uint32_t none_yet = 0xFFFFFFFFu;
    Workspace& work_;
    const Policies& policies_;
    OpenMoves<Policies> moves_;
    std::vector<NodeId> opened_;
};

}  // namespace gpusched::consolidation::detail
