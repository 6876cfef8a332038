// What one node answers under a policy, and the decision made of it.
#pragma once

#include <gpusched/config.hpp>
#include <gpusched/preemption/detail/search.hpp>
#include <gpusched/preemption/preempt.hpp>

namespace gpusched::preemption::detail {

/// By what the policy compares candidates.
[[nodiscard]] Objective objective_of(Policy policy) noexcept;

/// The node's set of victims under the policy.
[[nodiscard]] Candidate best_of_node(const Cluster& cluster, const NodeProblem& node, const Request& request,
                                     const Options& options, Search& search);

/// Fills `decision`, reusing its memory.
void decide(const NodeProblem& node, const Candidate& candidate, bool spot, Decision& decision);

}  // namespace gpusched::preemption::detail
