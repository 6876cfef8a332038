// SPDX-License-Identifier: Apache-2.0
// Writes plans for other tools: CSV, scripts for Kubernetes and Slurm, Koordinator PodMigrationJobs.
#pragma once

#include <gpusched/core/fields.hpp>
#include <gpusched/model/plan.hpp>
#include <gpusched/model/spec.hpp>

#include <cstdint>
#include <string>
#include <type_traits>

namespace gpusched::io {

/// Writes a plan as CSV (RFC 4180 with plain line feeds), one row per step in execution order, then one per
/// node that the plan vacates and per node that it opens.
///
/// Columns: `step` (evict, move, place, vacate or open), `wave` (moves only), `task`, `from` (also a vacated
/// node), `to` (also an opened node), `gpus` (indices on `to`, separated by semicolons), `how` (copy, restart
/// or evict; empty for pending tasks); of moves `chain` and `for` (the vacated node it serves); and of the
/// task `namespace`, `owner_kind` (empty = none or unknown) and `task_gpus` (empty = unknown).
[[nodiscard]] std::string plan_to_csv(const PlanSpec& plan);

struct KubernetesStepsOptions {
    std::string default_namespace = "default";  ///< of tasks without a namespace in their name
};
template <class F>
constexpr void visit_fields(std::type_identity<KubernetesStepsOptions>, F&& field) {
    field("default_namespace", &KubernetesStepsOptions::default_namespace);
}

/// Writes a plan as a shell script that needs `kubectl` alone. It cordons the nodes to be vacated and marks
/// them, asks for approval, and evicts their pods through the Eviction API, largest first, a few at a time.
///
/// A pod is evicted only if the target of the plan, or another open node, has room for it at that moment. A
/// node is uncordoned and left out if its pods have no room or a disruption budget refuses their eviction. The
/// status is 0 only if the whole plan is carried out: nodes are empty, replacements ready, no budget broken. All
/// state is in the cluster, so a second run goes on after an interruption, and `undo` removes the cordons.
///
/// A stock Kubernetes accepts no destination for a pod's replacement and does not start it before the
/// eviction. See `plan_to_pod_migration_jobs` for a scheduler that can do both.
/// @throws InvalidInput naming every task and node with a name that Kubernetes would not accept
[[nodiscard]] std::string plan_to_kubernetes_steps(const PlanSpec& plan,
                                                   const KubernetesStepsOptions& options = {});

/// Writes a plan as a shell script that needs `scontrol` and `squeue`. It drains the nodes to be vacated and
/// requeues whole jobs on hold, largest first, releases each and waits until it runs again.
///
/// Slurm chooses the nodes and the time of each start. A job that no longer runs where the plan takes it from
/// is left alone. Started again after an interruption, the script goes on; `undo` opens the nodes.
/// @param cluster  says which tasks a job has, where they run, and whether the job can be requeued
/// @throws InvalidInput naming every job that Slurm could not treat as the plan says: one that cannot be
///         requeued, that the plan moves in part or twice; and every name that is not of a Slurm job or node
[[nodiscard]] std::string plan_to_slurm_steps(const PlanSpec& plan, const ClusterSpec& cluster);

struct KoordinatorOptions {
    std::string default_namespace = "default";       ///< of tasks without a namespace in their name
    std::string name_prefix = "gpusched";            ///< of the objects' names, at most 200 characters
    std::string scheduler_name = "koord-scheduler";  ///< binds the reservations
    std::int64_t ttl_s = 900;                        ///< after which a job gives up, >= 1
};
template <class F>
constexpr void visit_fields(std::type_identity<KoordinatorOptions>, F&& field) {
    field("default_namespace", &KoordinatorOptions::default_namespace);
    field("name_prefix", &KoordinatorOptions::name_prefix);
    field("scheduler_name", &KoordinatorOptions::scheduler_name);
    field("ttl_s", &KoordinatorOptions::ttl_s, at_least(1));
}

/// Writes a plan as a stream of `PodMigrationJob` objects (YAML, scheduling.koordinator.sh/v1alpha1).
///
/// Each move reserves the task's request on its destination before the pod is evicted (mode
/// ReservationFirst), which is the make-before-break that plans assume; evictions use mode EvictDirectly.
/// Jobs of the first wave, number 1, are active if no eviction precedes them. All later jobs are paused:
/// resume a wave through its label `gpusched/wave` once the previous one has succeeded.
///
/// The scheduler chooses the cards. Annotations keep the cards of the plan, and `how`, `chain` and `for` of a
/// move. A pod that restarts gets its reservation first, too. A pod must keep its name if it moves twice.
/// Placements are comments: the scheduler binds pending pods. Named resources are requested by their names
/// (except `pods`), devices by the class that the plan chose; both must be names that Kubernetes knows.
/// @param cluster  provides the tasks' requests and tolerations, and the classes of devices
/// @throws InvalidInput naming every task that `cluster` lacks, every name that Kubernetes would not accept
///         and every invalid option
[[nodiscard]] std::string plan_to_pod_migration_jobs(const PlanSpec& plan, const ClusterSpec& cluster,
                                                     const KoordinatorOptions& options = {});

}  // namespace gpusched::io
