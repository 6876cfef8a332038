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
    /// Schedulers whose pods may be moved and evicted; pods of others stay where they are. Empty = default-scheduler.
    std::vector<std::string> schedulers{};
    /// Kinds of owners that make a pod anew when it goes, besides those of Kubernetes itself: its pods can restart elsewhere.
    std::vector<std::string> recreating_owners{};
    /// Pods marked `safe-to-evict: "false"` or `do-not-disrupt` are moved and evicted like others.
    bool ignore_protection = false;
    /// Pods that nobody owns may be evicted; nobody makes them anew.
    bool evict_bare_pods = false;
    /// Nodes that are not ready receive pods where no taint keeps them off, as from kube-scheduler; otherwise they receive nothing.
    bool open_unready_nodes = false;
    /// Pods of Deployments, ReplicaSets and ReplicationControllers move by an eviction, as a stock cluster can carry out: they are down in
    /// between, and count against disruption budgets. Otherwise they move by a copy, and the replacement runs first.
    bool moves_by_eviction = false;
    /// Resources that are whole GPUs, besides those that are known, such as `metax-tech.com/gpu`.
    std::vector<std::string> gpu_resources{};
    /// Labels that name a node's network domain, from the root down. Empty = those of the Topology object (Kueue, KAI) in the
    /// input, else those of NVIDIA's topograph where nodes have them.
    std::vector<std::string> network_labels{};
    int examples = 3;  ///< names of objects in each row of the report, 0 .. 1000
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

/// Reads a cluster from objects of Kubernetes: what kube-scheduler's filters, the disruption controller and the Eviction API
/// know of it. docs/kubernetes.md has the table of what is exact, approximated and ignored.
///
/// Nodes and pods, and where given PodDisruptionBudgets, PriorityClasses, Namespaces, PersistentVolumes and claims, the owners of
/// pods, gangs (PodGroup, Workload, LeaderWorkerSet, JobSet), ResourceSlices and ResourceClaims, and a Topology. Objects that do
/// not make sense, or do not fit each other, are clipped or left out, and reported; they do not refuse the cluster. Tasks are named
/// `namespace/pod`, jobs `namespace/owner`.
/// @param texts   JSON or YAML, UTF-8, each at most `largest_document` bytes: a List of any kinds, single objects, or several
///                documents of YAML; an object that occurs twice counts once
/// @throws InvalidInput for a text that is neither JSON nor YAML, a document that holds no objects of Kubernetes, an input without
///         a Node, and options out of range
/// @throws BackendError for YAML when the library was built without libyaml
/// Complexity: linear in the size of the texts, and in what pods select by labels. Deterministic, safe to call from several threads.
[[nodiscard]] ClusterReading kubernetes_from_texts(std::span<const NamedText> texts,
                                                   const KubernetesReadOptions& options = {});
[[nodiscard]] ClusterReading kubernetes_from_text(std::string_view text,
                                                  const KubernetesReadOptions& options = {},
                                                  std::string_view source = "<text>");

/// The same from files and folders, as `kubernetes_files` lists them.
/// @throws BackendError also when a file cannot be read
/// @throws InvalidInput also for a folder without such files
[[nodiscard]] ClusterReading read_kubernetes(std::span<const std::string> paths,
                                             const KubernetesReadOptions& options = {});

/// The files that paths stand for: files themselves, and of folders all files `*.json`, `*.yaml` and `*.yml`, by name.
/// @throws BackendError for a folder that cannot be read
/// @throws InvalidInput for a folder without such files
[[nodiscard]] std::vector<std::string> kubernetes_files(std::span<const std::string> paths);

/// Reads a cluster from `snapshot.json`, which KAI-Scheduler's snapshot plugin serves in a zip archive. docs/kai.md has the table of
/// what is exact, approximated and ignored.
///
/// Its Kubernetes objects are read as `kubernetes_from_texts` reads them. Besides, as KAI-Scheduler has it: parts of GPUs
/// (`gpu-fraction`, `gpu-memory`) and which pods share one, priority and preemptibility of PodGroups, required and preferred levels
/// of topology, and pods that it has decided to bind (BindRequest). Queues are not read.
/// @param text     JSON in UTF-8, at most `largest_document` bytes
/// @param options  `schedulers`: empty = the scheduler that wrote the snapshot, else `kai-scheduler`
/// @throws InvalidInput for a text that is no such JSON, a zip archive, a snapshot without a Node, and options out of range
/// Complexity: as `kubernetes_from_texts`. Deterministic, safe to call from several threads.
[[nodiscard]] ClusterReading kai_snapshot_from_text(std::string_view text,
                                                    const KubernetesReadOptions& options = {},
                                                    std::string_view source = "<text>");

/// The same from a file `snapshot.json`.
/// @throws BackendError also when the file cannot be read
[[nodiscard]] ClusterReading read_kai_snapshot(const std::string& path,
                                               const KubernetesReadOptions& options = {});

}  // namespace gpusched::io
