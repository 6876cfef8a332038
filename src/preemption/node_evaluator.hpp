// SPDX-License-Identifier: Apache-2.0
// NodeEvaluator: the best victims on one node under a policy, and the resulting decision.
#pragma once

#include "preemption/search.hpp"

#include <gpusched/model/cluster.hpp>
#include <gpusched/preemption/preempt.hpp>

#include <algorithm>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

namespace gpusched::preemption::detail {

/// A candidate with its victims, in `victims` or, on nodes with more than 64 potential victims, in `many`.
struct Answer : Choice<VictimSet> {
    ManyVictims many{};
};

/// Evaluates nodes in sequence, reusing its memory.
class NodeEvaluator {
  public:
    /// Reads the node. Allocates if the preemptor has group constraints or there are more than 64 potential
    /// victims.
    void read(const Cluster& cluster, const Request& request, const CostFunction& cost, NodeId node,
              const GangTable* gangs = nullptr);
    /// See NodeProblem.
    void forget() noexcept;
    /// Ends searches when the budget is exhausted.
    void watch(Budget* budget) noexcept;

    /// Returns whether gangs or disruption budgets restrict the sets of victims.
    [[nodiscard]] bool is_bound() const noexcept {
        return with_problem([](const auto& node) { return node.is_bound(); });
    }
    /// The number of potential victims.
    [[nodiscard]] int size() const noexcept {
        return with_problem([](const auto& node) { return node.size(); });
    }
    /// Returns whether there are more than 64 potential victims.
    [[nodiscard]] bool has_many() const noexcept { return has_many_; }
    /// The locality for the preemptor without evictions.
    [[nodiscard]] std::uint8_t locality_now() const {
        return with_problem([](const auto& node) { return node.locality({}); });
    }
    /// The best victims under the policy.
    [[nodiscard]] Answer best(const Options& options);
    /// Lists all smallest sets; the sets and their members are in snapshot order.
    void minimal_sets(std::vector<std::vector<TaskId>>& sets);
    /// The missing resources, with all potential victims in place or with none of them.
    [[nodiscard]] Shortage shortage(bool without_victims) const;
    /// The earliest start among the victims of the highest priority.
    [[nodiscard]] std::int64_t longest_running(const Answer& answer) const;
    /// Fills `decision`, reusing its memory.
    void decide(const Answer& answer, bool spot, Decision& decision) const;

    /// Number of sets checked so far.
    [[nodiscard]] std::int64_t steps() const noexcept;
    /// No search so far hit a limit.
    [[nodiscard]] bool proven() const noexcept;

  private:
    struct Many {
        NodeProblem<ManyVictims> problem;
        Search<ManyVictims> search;
    };
    template <class F>
    std::invoke_result_t<F, const NodeProblem<VictimSet>&> with_problem(F&& f) const {
        return has_many_ ? f(many_->problem) : f(problem_);
    }

    const Cluster* cluster_ = nullptr;
    const Request* request_ = nullptr;
    NodeProblem<VictimSet> problem_;
    Search<VictimSet> search_;
    bool has_many_ = false;
    std::unique_ptr<Many> many_;  // created for the first node that needs it
    Budget* budget_ = nullptr;
};

/// Lists the nodes that become empty, except for daemons: all their other tasks are victims, and no task is
/// placed there.
/// @param is_taken returns whether a task other than a daemon is placed on the node
template <class Taken>
void list_vacated_nodes(const Cluster& cluster, std::span<const TaskId> victims, const Taken& is_taken,
                        std::vector<NodeId>& vacated) {
    vacated.clear();
    for (const auto victim : victims) {
        const auto node = cluster.node_of(victim);
        if (!is_taken(node)) vacated.push_back(node);
    }
    if (vacated.empty()) return;
    // Victims are never daemons: a node is vacated if it is listed once per task other than daemons.
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
