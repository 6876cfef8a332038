// SPDX-License-Identifier: Apache-2.0
// What one node answers under a policy, however many potential victims it has, and the decision made of it.
#pragma once

#include "preemption/search.hpp"

#include <gpusched/model/cluster.hpp>
#include <gpusched/preemption/preempt.hpp>

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

namespace gpusched::preemption::detail {

/// A candidate with its victims: of the two sets, the one that the node needs.
struct Answer : Choice<VictimSet> {
    ManyVictims many{};
};

/// Asks one node after another, with the same memory.
class NodeQuestion {
  public:
    /// Reads the node. Allocates where the preemptor has group constraints, and where potential victims are more than 64.
    /// @param healthy GPUs that have not failed
    void read(const Cluster& cluster, const Request& request, const CostFunction& cost, NodeId node,
              const GangTable* gangs, GpuMask healthy);
    /// With the GPUs that the snapshot calls healthy.
    void read(const Cluster& cluster, const Request& request, const CostFunction& cost, NodeId node,
              const GangTable* gangs = nullptr) {
        read(cluster, request, cost, node, gangs, cluster.healthy_gpus(node));
    }
    /// See NodeProblem.
    void forget() noexcept;
    /// Searches end early when it is exhausted.
    void watch(Budget* budget) noexcept;

    /// Gangs or disruption budgets bind its victims.
    [[nodiscard]] bool is_bound() const noexcept {
        return has_many_ ? many_->problem.is_bound() : problem_.is_bound();
    }
    [[nodiscard]] bool has_gangs() const noexcept {
        return has_many_ ? many_->problem.has_gangs() : problem_.has_gangs();
    }
    /// Potential victims of the node that was read.
    [[nodiscard]] int size() const noexcept;
    [[nodiscard]] bool has_many() const noexcept { return has_many_; }
    /// The locality that the preemptor finds when nobody leaves.
    [[nodiscard]] std::uint8_t locality_now() const;
    /// The node's victims under the policy.
    [[nodiscard]] Answer best(const Options& options);
    /// All smallest sets, each in snapshot order, and so are the sets.
    void minimal_sets(std::vector<std::vector<TaskId>>& sets);
    [[nodiscard]] Shortage shortage(bool when_all_have_left) const;
    /// The earliest start of those of the highest priority among the victims.
    [[nodiscard]] std::int64_t longest_running(const Answer& answer) const;
    /// Fills `decision`, reusing its memory.
    void decide(const Answer& answer, bool spot, Decision& decision) const;

    /// Sets looked at so far.
    [[nodiscard]] std::int64_t steps() const noexcept;
    /// No search so far hit its limit or the budget's.
    [[nodiscard]] bool proven() const noexcept;

  private:
    struct Many {
        NodeProblem<ManyVictims> problem;
        Search<ManyVictims> search;
    };
    const Cluster* cluster_ = nullptr;
    const Request* request_ = nullptr;
    NodeProblem<VictimSet> problem_;
    Search<VictimSet> search_;
    bool has_many_ = false;
    std::unique_ptr<Many> many_;  // made for the first node that needs it
    Budget* budget_ = nullptr;
};

/// Nodes that hold tasks other than daemons now, all of them victims, and where none is placed.
/// @param is_taken whether a task other than a daemon is placed on the node
template <class Taken>
void list_vacated_nodes(const Cluster& cluster, std::span<const TaskId> victims, const Taken& is_taken,
                        std::vector<NodeId>& vacated) {
    vacated.clear();
    for (const auto victim : victims) {
        const auto node = cluster.node_of(victim);
        if (!is_taken(node)) vacated.push_back(node);
    }
    if (vacated.empty()) return;
    // Victims are never daemons: a node is vacated when it is here as often as it holds others than daemons.
    std::sort(vacated.begin(), vacated.end());
    auto kept = vacated.begin();
    for (auto first = vacated.begin(), last = first; first != vacated.end(); first = last) {
        const auto node = *first;
        last = std::find_if(first, vacated.end(), [&](NodeId other) { return other != node; });
        if (last - first == cluster.occupants(node)) *kept++ = node;
    }
    vacated.erase(kept, vacated.end());
}

}  // namespace gpusched::preemption::detail
