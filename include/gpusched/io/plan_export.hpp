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

/// Writes a plan as CSV (RFC 4180 with plain line feeds), one row per step in the order in which they happen, then one per node that
/// the plan vacates and per node that it opens.
///
/// Columns: `step` (evict, move, place, vacate or open), `wave` (moves only), `task`, `from` (also a vacated node), `to` (also an
/// opened node), `gpus` (indices on `to`, separated by semicolons); and of moves `how`, `chain` and `for` (the vacated node it serves).
[[nodiscard]] std::string plan_to_csv(const PlanSpec& plan);

struct KubernetesStepsOptions {
    std::string default_namespace = "default";  ///< of tasks whose name is not "namespace/pod"
};
template <class F>
constexpr void visit_fields(std::type_identity<KubernetesStepsOptions>, F&& field) {
    field("default_namespace", &KubernetesStepsOptions::default_namespace);
}

/// Writes a plan as a shell script of `kubectl` calls: cordon the nodes that pods leave, evict, then wave by wave; at last nodes that are
/// not to be vacated are uncordoned, for the plan's placements.
///
/// Each eviction goes through the Eviction API (policy/v1), for the pod's UID, so that disruption budgets are respected; where one
/// refuses (429) it is tried again. After each wave the script waits until the controllers of the pods have as many ready
/// pods as before. It keeps what was done in a file: started again after an interruption, it goes on, and with `undo` it takes the cordons back.
///
/// A stock Kubernetes cannot be told where a pod's replacement starts, nor does it start it first: the script says so at each move,
/// says where the replacements went, and asks before it goes on where that is not what the plan wants. See
/// `plan_to_pod_migration_jobs` for a scheduler that can do both.
/// @throws InvalidInput naming every task and node whose name Kubernetes would not accept
[[nodiscard]] std::string plan_to_kubernetes_steps(const PlanSpec& plan,
                                                   const KubernetesStepsOptions& options = {});

struct KoordinatorOptions {
    std::string default_namespace = "default";       ///< of tasks whose name is not "namespace/pod"
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
/// Each move reserves the task's request on its destination before the pod is evicted (mode ReservationFirst), which
/// is the make-before-break that plans assume; evictions use mode EvictDirectly. Jobs of wave 0 are active when there
/// is no eviction before them, all later ones are paused: resume a wave through its label `gpusched/wave` when the one
/// before it has succeeded. The scheduler chooses the cards; the plan's are kept as an annotation, as are
/// `how`, `chain` and `for` where a move says them; a pod that restarts gets its reservation first, too. A pod's name must
/// survive its move for a second one to find it. Placements are comments: the scheduler binds pending pods.
/// Named resources are asked for by their names (`pods` apart), devices by the class that the plan chose: these names must be those
/// that Kubernetes has.
/// @param cluster  where the tasks' requests and tolerations come from, and the classes of devices
/// @throws InvalidInput naming every task that `cluster` lacks, every name that Kubernetes would not accept and
///         every invalid option
[[nodiscard]] std::string plan_to_pod_migration_jobs(const PlanSpec& plan, const ClusterSpec& cluster,
                                                     const KoordinatorOptions& options = {});

}  // namespace gpusched::io
