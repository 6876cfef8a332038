// SPDX-License-Identifier: Apache-2.0
// Consolidate: vacate as many nodes as possible by moving tasks, as an executable plan.
#pragma once

#include <gpusched/consolidation/options.hpp>
#include <gpusched/consolidation/result.hpp>
#include <gpusched/core/context.hpp>
#include <gpusched/model/cluster.hpp>

namespace gpusched::consolidation {

/// Plans moves that vacate nodes, with the preset that `options` name.
///
/// Running tasks spread over half-empty machines strand the rest of those machines. The search moves tasks off
/// sparsely used nodes onto others that are in use already, making room there by moving further tasks where
/// needed (ejection chains), and orders the moves into make-before-break waves: a moving task holds its old and
/// its new place until its wave ends. The problem and the `ipc` preset are section 4 (IPC, Algorithm 1) of the ASI
/// heterogeneity-at-hyperscale paper; `fast` and `best` are this library's own.
///
/// Locked, standby and daemon tasks and those bound to local cores stay. Nothing moves onto a node that was empty before the plan
/// or that the plan vacates; other nodes may run empty in one wave and receive in a later one. Every constraint holds at every moment, with both copies of a moving task counted.
///
/// With `options.goal` the plan makes so many empty nodes, or slots for tasks of a shape, by moves that cost little, and says in
/// `Plan::goal_reached` whether they are there. It is empty where the goal is reached without one.
///
/// @param context executor, stop token, clock and progress hook
/// @return a valid plan, whatever the stop reason; for an empty snapshot an empty plan
/// @throws InvalidInput for options out of range
/// @note same snapshot, options and seed give the same plan for any number of threads, unless a time limit or a
///       cancellation strikes. Distinct calls may run at once.
[[nodiscard]] Result consolidate(const Cluster& cluster, const Options& options = {},
                                 const Context& context = {});

}  // namespace gpusched::consolidation
