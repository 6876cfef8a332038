// SPDX-License-Identifier: Apache-2.0
// Writes plans for other tools: CSV, kubectl calls, Koordinator PodMigrationJobs.
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

/// Writes a plan as a shell script of `kubectl` calls: cordon the nodes that pods leave, evict, then wave by
/// wave. Before the plan's placements, nodes that stay in use are uncordoned.
///
/// Each eviction goes through the Eviction API (policy/v1), for the pod's UID, so disruption budgets are
/// respected; a refused eviction (429) is tried again. After each wave the script waits until the controllers
/// of the pods have as many ready pods as before. A file keeps the completed steps: started again after an
/// interruption, the script continues, and with `undo` it removes its cordons.
///
/// A stock Kubernetes accepts no destination for a pod's replacement and does not start it before the
/// eviction. The script says so at each move, reports the actual destinations, and asks before it continues
/// if they differ from the plan. See `plan_to_pod_migration_jobs` for a scheduler that can do both.
/// @throws InvalidInput naming every task and node with a name that Kubernetes would not accept
[[nodiscard]] std::string plan_to_kubernetes_steps(const PlanSpec& plan,
                                                   const KubernetesStepsOptions& options = {});

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
/// Jobs of wave 0 are active if no eviction precedes them. All later jobs are paused: resume a wave through
/// its label `gpusched/wave` once the previous one has succeeded.
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
