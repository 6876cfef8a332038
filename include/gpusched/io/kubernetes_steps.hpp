// Plans as steps for plain Kubernetes.
#pragma once

#include <gpusched/config.hpp>
#include <gpusched/core/fields.hpp>
#include <gpusched/model/plan.hpp>

#include <string>
#include <type_traits>

namespace GPUSCHED_NAMESPACE::io {

struct KubernetesOptions {
    std::string default_namespace = "default";  ///< of tasks whose name is not "namespace/pod"
};
template <class F>
constexpr void visit_fields(std::type_identity<KubernetesOptions>, F&& field) {
    field("default_namespace", &KubernetesOptions::default_namespace);
}

/// Writes a plan as a shell script of `kubectl` calls: cordon the nodes to be vacated, evict, then wave by wave.
///
/// Each eviction goes through the Eviction API (policy/v1), so that disruption budgets are respected. Plain Kubernetes
/// cannot be told where a pod's replacement starts, nor does it start it first: the destination stands in a comment,
/// with a word where the plan has the pod restart,
/// and the script asks for confirmation after each wave. Placements are comments. See `plan_to_pod_migration_jobs`
/// for a scheduler that can do both.
/// @throws InvalidInput naming every task and node whose name Kubernetes would not accept
[[nodiscard]] std::string plan_to_kubernetes_steps(const PlanSpec& plan,
                                                   const KubernetesOptions& options = {});

}  // namespace GPUSCHED_NAMESPACE::io

#ifdef GPUSCHED_HEADER_ONLY
#include <gpusched/io/impl/kubernetes_steps.ipp>
#endif
