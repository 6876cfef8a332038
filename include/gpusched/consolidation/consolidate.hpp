// SPDX-License-Identifier: Apache-2.0
// consolidate(): plans moves that empty as many nodes as possible.
#pragma once

#include <gpusched/consolidation/options.hpp>
#include <gpusched/consolidation/result.hpp>
#include <gpusched/core/context.hpp>
#include <gpusched/model/cluster.hpp>

namespace gpusched::consolidation {

/// Plans moves that vacate nodes, with the preset of the options.
///
/// Tasks move off sparsely used nodes onto nodes in use, and further tasks move out of their way (ejection
/// chains). The moves come in make-before-break waves: a moving task holds both places until its wave ends.
/// Section 4 (IPC, Algorithm 1) of the ASI heterogeneity-at-hyperscale paper defines the problem and `ipc`.
///
/// Locked, standby and daemon tasks and tasks bound to local cores stay. Nothing moves onto a node that was
/// empty before the plan or that the plan vacates. Every constraint holds at every moment for both copies.
///
/// @param context executor, stop token, clock and progress hook
/// @return a valid plan, whatever the stop reason; `Plan::goal_reached` says whether it reaches `options.goal`
/// @throws InvalidInput for options out of range
/// @note same snapshot, options and seed give the same plan for any number of threads, unless a time limit or
///     a cancellation ends the search. Distinct calls may run at once.
[[nodiscard]] Result consolidate(const Cluster& cluster, const Options& options = {},
                                 const Context& context = {});

}  // namespace gpusched::consolidation
