// SPDX-License-Identifier: Apache-2.0
// Reads clusters from Kubernetes objects, as kubectl prints them, and from snapshots of KAI-Scheduler.
#pragma once

#include <gpusched/core/fields.hpp>
#include <gpusched/io/cluster_reading.hpp>

#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace gpusched::io {

struct KubernetesReadOptions {
    /// Schedulers of the pods that may be moved and evicted; pods of others stay on their nodes. Empty =
    /// default-scheduler.
    std::vector<std::string> schedulers{};
    /// More kinds of owners that recreate a deleted pod, in addition to those of Kubernetes: their pods can
    /// restart elsewhere.
    std::vector<std::string> recreating_owners{};
    /// Pods marked `safe-to-evict: "false"` or `do-not-disrupt` are moved and evicted like others.
    bool ignore_protection = false;
    /// Pods without an owner may be evicted; nothing recreates them.
    bool evict_bare_pods = false;
    /// Nodes that are not ready receive pods unless a taint forbids it, as from kube-scheduler; otherwise
    /// they receive none.
    bool open_unready_nodes = false;
    /// Pods of Deployments, ReplicaSets and ReplicationControllers move by an eviction, as a stock cluster
    /// can do: they are down in between, and count against disruption budgets. Otherwise they move by a copy,
    /// and the replacement runs first.
    bool moves_by_eviction = false;
    /// More resources that are whole GPUs, such as `metax-tech.com/gpu`.
    std::vector<std::string> gpu_resources{};
    /// Labels that name a node's network domain, from the root down. Empty = those of the Topology object
    /// (Kueue, KAI) in the input, else those of NVIDIA's topograph if nodes have them.
    std::vector<std::string> network_labels{};
    int examples = 3;  ///< names of objects in each row of the report, 0 to 1000
};
template <class F>
constexpr void visit_fields(std::type_identity<KubernetesReadOptions>, F&& field) {
    field("schedulers", &KubernetesReadOptions::schedulers);
    field("recreating_owners", &KubernetesReadOptions::recreating_owners);
    field("ignore_protection", &KubernetesReadOptions::ignore_protection);
    field("evict_bare_pods", &KubernetesReadOptions::evict_bare_pods);
    field("open_unready_nodes", &KubernetesReadOptions::open_unready_nodes);
    field("moves_by_eviction", &KubernetesReadOptions::moves_by_eviction);
    field("gpu_resources", &KubernetesReadOptions::gpu_resources);
    field("network_labels", &KubernetesReadOptions::network_labels);
    field("examples", &KubernetesReadOptions::examples, within(0, 1000));
}

/// Reads a cluster from objects of Kubernetes, as kube-scheduler's filters, the disruption controller and the
/// Eviction API see it. docs/kubernetes.md lists the exact, approximated and ignored parts.
///
/// The texts hold nodes and pods and, if available, PodDisruptionBudgets, PriorityClasses, Namespaces,
/// PersistentVolumes and claims, the owners of pods, gangs (PodGroup, Workload, LeaderWorkerSet, JobSet),
/// ResourceSlices and ResourceClaims, and a Topology. Objects that are malformed or contradict each other are
/// clipped or left out, and reported; they do not refuse the cluster. Tasks are named `namespace/pod`, jobs
/// `namespace/owner`.
/// @param texts   JSON or YAML, UTF-8, each at most `largest_document` bytes: a List of any kinds, single
///                objects, or several documents of YAML; an object that occurs twice counts once
/// @throws InvalidInput for a text that is neither JSON nor YAML, a document without objects of Kubernetes,
///         an input without a Node, and options out of range
/// @throws BackendError for YAML if the library was built without libyaml
/// Complexity: linear in the size of the texts, and in the pods that label selectors select. Deterministic,
/// safe to call from several threads.
[[nodiscard]] ClusterReading kubernetes_from_texts(std::span<const NamedText> texts,
                                                   const KubernetesReadOptions& options = {});
[[nodiscard]] ClusterReading kubernetes_from_text(std::string_view text,
                                                  const KubernetesReadOptions& options = {},
                                                  std::string_view source = "<text>");

/// The same from files and folders, as `kubernetes_files` lists them.
/// @throws BackendError also if a file cannot be read
/// @throws InvalidInput also for a folder without such files
[[nodiscard]] ClusterReading read_kubernetes(std::span<const std::string> paths,
                                             const KubernetesReadOptions& options = {});

/// The files behind paths: files themselves, and of folders all files `*.json`, `*.yaml` and `*.yml`, by
/// name.
/// @throws BackendError for a folder that cannot be read
/// @throws InvalidInput for a folder without such files
[[nodiscard]] std::vector<std::string> kubernetes_files(std::span<const std::string> paths);

/// Reads a cluster from `snapshot.json`, which KAI-Scheduler's snapshot plugin serves in a zip archive.
/// docs/kai.md lists the exact, approximated and ignored parts.
///
/// Its Kubernetes objects are read as `kubernetes_from_texts` reads them. In addition, as in KAI-Scheduler:
/// parts of GPUs (`gpu-fraction`, `gpu-memory`) and the pods that share one, priority and preemptibility of
/// PodGroups, required and preferred levels of topology, and pods that it has decided to bind (BindRequest).
/// Queues are not read.
/// @param text     JSON in UTF-8, at most `largest_document` bytes
/// @param options  `schedulers`: empty = the scheduler that wrote the snapshot, else `kai-scheduler`
/// @throws InvalidInput for a text that is no such JSON, a zip archive, a snapshot without a Node, and
/// options out of range Complexity: as `kubernetes_from_texts`. Deterministic, safe to call from several
/// threads.
[[nodiscard]] ClusterReading kai_snapshot_from_text(std::string_view text,
                                                    const KubernetesReadOptions& options = {},
                                                    std::string_view source = "<text>");

/// The same from a file `snapshot.json`.
/// @throws BackendError also if the file cannot be read
[[nodiscard]] ClusterReading read_kai_snapshot(const std::string& path,
                                               const KubernetesReadOptions& options = {});

}  // namespace gpusched::io
