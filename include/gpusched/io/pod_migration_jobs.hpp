// SPDX-License-Identifier: Apache-2.0
// Plans as Koordinator PodMigrationJobs.
#pragma once

#include <gpusched/core/fields.hpp>
#include <gpusched/model/plan.hpp>
#include <gpusched/model/spec.hpp>

#include <cstdint>
#include <string>
#include <type_traits>

namespace gpusched::io {

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
