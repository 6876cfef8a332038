// SPDX-License-Identifier: Apache-2.0
// Plans as steps for plain Kubernetes.
#pragma once

#include <gpusched/core/fields.hpp>
#include <gpusched/model/plan.hpp>

#include <string>
#include <type_traits>

namespace gpusched::io {

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

}  // namespace gpusched::io
