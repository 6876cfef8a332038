// SPDX-License-Identifier: Apache-2.0
// allocate: a gang of pods over switches, all of them or none.
#pragma once

#include <gpusched/allocation/allocate_options.hpp>
#include <gpusched/core/context.hpp>
#include <gpusched/model/cluster.hpp>
#include <gpusched/model/plan.hpp>

#include <span>
#include <string_view>
#include <vector>

namespace gpusched::allocation {

/// Where all pods of a gang go, without moving or evicting anybody: one job over switches (ASI paper, section 4.1).
///
/// A large job that straddles access switches loses bandwidth, so its pods go under as few switches as unevenly as they
/// can: least GPU entropy. The capacity of a domain is what its nodes can really host of these pods, counted pod by pod: idle
/// healthy GPUs, GPU memory and guaranteed locality, cores, memory, models, labels, taints and group constraints. Pods of one
/// shape are placed by `options.policy`; ties of least entropy leave the largest block free. Within a domain the nodes that
/// hold most are used first and the last pods go to the tightest node; GPUs as the pods wish (ByWish). Pods of several
/// shapes are placed by a search: one domain for all if it finds one, else greedily, improved by moves and exchanges. Where
/// that finds no place, an exact search does or proves that there is none, within a limit of 200,000 steps. The time limit and
/// the context's stop token end searches over several shapes; then what a simple rule places is taken, and `stop_reason` says so.
///
/// A required level is never relaxed: what cannot be met is reported with the constraint that binds, and nothing is placed.
/// Levels that pods share an `affinity` group at count as required.
///
/// @param pods pending tasks, distinct, at least one
/// @return see Allocation; the cluster is not changed
/// @throws InvalidInput for pods that are placed, unknown or listed twice, and options out of range
/// One shape: O(nodes + switches log switches). Several: O(shapes x nodes) per trial, a few hundred trials. Deterministic,
/// unless a time limit or a cancellation strikes.
[[nodiscard]] Allocation allocate(const Cluster& cluster, std::span<const TaskId> pods,
                                  const AllocateOptions& options = {}, const Context& context = {});

/// The same, done: the pods run where the result says, or nothing has changed at all. Without a copy of the cluster.
///
/// The changes are in the cluster's log, so `rollback` to a checkpoint taken before undoes them.
Allocation place_gang(Cluster& cluster, std::span<const TaskId> pods, const AllocateOptions& options = {},
                      const Context& context = {});

/// The pending tasks of a job, ascending; of a name that no job has, the pending task of that name.
/// @throws InvalidInput for a name that neither a job nor a task has
[[nodiscard]] std::vector<TaskId> pending_pods(const Cluster& cluster, std::string_view job);

/// The placements as a plan.
[[nodiscard]] Plan to_plan(const Allocation& allocation);

}  // namespace gpusched::allocation
