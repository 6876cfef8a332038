// SPDX-License-Identifier: Apache-2.0
// Declares allocate(), which places a gang of pods over switches: all of them or none.
#pragma once

#include <gpusched/allocation/allocate_options.hpp>
#include <gpusched/core/context.hpp>
#include <gpusched/model/cluster.hpp>
#include <gpusched/model/plan.hpp>

#include <span>
#include <string_view>
#include <vector>

namespace gpusched::allocation {

/// Chooses a node for every pod of a gang, without moves or evictions: one job over switches (ASI paper,
/// section 4.1).
///
/// A large job that straddles access switches loses bandwidth. So its pods use few switches, as unevenly as
/// possible: the spread has the least GPU entropy.
///
/// - The capacity of a domain is the number of these pods that its nodes can host, counted pod by pod. The
///   count respects idle healthy GPUs, GPU memory, guaranteed locality, cores, memory, models, labels, taints
///   and group constraints.
/// - Pods of one shape are placed by `options.policy`. Ties of least entropy leave the largest block free.
/// - Within a domain the nodes that hold most are used first and the last pods go to the tightest node. GPUs
///   are chosen as the pods wish (ByWish).
/// - Pods of several shapes are placed by a search: one domain for all if it finds one, else greedily,
///   improved by moves and exchanges. If that finds no placement, an exact search finds one or proves that
///   there is none, within a limit of 200,000 steps.
/// - The time limit and the context's stop token end searches over several shapes. The result is then the
///   placement of a simple rule, and `stop_reason` is set.
///
/// A required level is never relaxed: if it cannot be met, nothing is placed and the result names the binding
/// constraint. Levels at which pods share an `affinity` group count as required.
///
/// @param pods pending tasks, distinct, at least one
/// @return see Allocation; the cluster is not changed
/// @throws InvalidInput for pods that are placed, unknown or listed twice, and options out of range
/// One shape: O(nodes + switches log switches). Several: O(shapes x nodes) per trial, a few hundred trials.
/// Deterministic, unless a time limit or a cancellation strikes.
[[nodiscard]] Allocation allocate(const Cluster& cluster, std::span<const TaskId> pods,
                                  const AllocateOptions& options = {}, const Context& context = {});

/// Does the same in the cluster itself, without a copy: the pods run as the result says, or nothing has
/// changed.
///
/// The changes are in the cluster's log, so `rollback` to a checkpoint taken before undoes them.
Allocation place_gang(Cluster& cluster, std::span<const TaskId> pods, const AllocateOptions& options = {},
                      const Context& context = {});

/// Returns the pending tasks of a job, ascending. If no job has the name, returns the pending task of that
/// name.
/// @throws InvalidInput for a name that neither a job nor a task has
[[nodiscard]] std::vector<TaskId> pending_pods(const Cluster& cluster, std::string_view job);

/// Returns the placements as a plan.
[[nodiscard]] Plan to_plan(const Allocation& allocation);

}  // namespace gpusched::allocation
