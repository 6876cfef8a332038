// SPDX-License-Identifier: Apache-2.0
// Reads clusters from the output of Slurm's scontrol.
#pragma once

#include <gpusched/core/fields.hpp>
#include <gpusched/io/cluster_reading.hpp>

#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace gpusched::io {

struct SlurmReadOptions {
    /// Jobs of partitions with PreemptMode=OFF may be evicted even if other partitions have another mode.
    bool ignore_protection = false;
    /// Jobs that Slurm cannot requeue may be evicted; they are lost.
    bool evict_without_requeue = false;
    int array_tasks = 100;  ///< most tasks of a pending job array that are read, 0 to 100000
    /// Name of a topology in topology.yaml; empty = the default of the cluster, or the only one.
    std::string topology{};
    int examples = 3;  ///< names of objects in each row of the report, 0 to 1000
};
template <class F>
constexpr void visit_fields(std::type_identity<SlurmReadOptions>, F&& field) {
    field("ignore_protection", &SlurmReadOptions::ignore_protection);
    field("evict_without_requeue", &SlurmReadOptions::evict_without_requeue);
    field("array_tasks", &SlurmReadOptions::array_tasks, within(0, 100'000));
    field("topology", &SlurmReadOptions::topology);
    field("examples", &SlurmReadOptions::examples, within(0, 1000));
}

/// Reads a cluster from the output of `scontrol show nodes`, `show jobs` and `show partitions`, as text or
/// JSON. docs/slurm.md lists the exact, approximated and ignored parts.
///
/// A job of several nodes is a job with one task for each node, all of which must run. Jobs are named by
/// their ids (`17`, `20_4`), tasks by job and number (`17/0`). Records that are malformed or contradict each
/// other are clipped or left out, and reported; they do not refuse the cluster.
/// @param texts   output of scontrol in its own form, also with -o and -d, or of `scontrol --json` (data
///                parsers v0.0.39 to v0.0.44), UTF-8, each at most `largest_document` bytes; kinds are
///                recognised by content; topology.conf and topology.yaml give the network; a record that
///                occurs twice counts once
/// @throws InvalidInput for a text that is none of these, a topology that is not one, an input without a
///         node, and options out of range
/// @throws BackendError for YAML if the library was built without libyaml
/// Complexity: linear in the size of the texts, and in jobs times the nodes that they exclude. Deterministic,
/// safe to call from several threads.
[[nodiscard]] ClusterReading slurm_from_texts(std::span<const NamedText> texts,
                                              const SlurmReadOptions& options = {});
[[nodiscard]] ClusterReading slurm_from_text(std::string_view text, const SlurmReadOptions& options = {},
                                             std::string_view source = "<text>");

/// The same from files.
/// @throws BackendError also if a file cannot be read
[[nodiscard]] ClusterReading read_slurm(std::span<const std::string> paths,
                                        const SlurmReadOptions& options = {});

}  // namespace gpusched::io
