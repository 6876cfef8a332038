// SPDX-License-Identifier: Apache-2.0
// Snapshots of KAI-Scheduler as snapshots of ours.
#pragma once

#include <gpusched/io/kubernetes.hpp>

#include <string>
#include <string_view>

namespace gpusched::io {

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
