// SPDX-License-Identifier: Apache-2.0
// Snapshots as `gpusched.cluster` documents (JSON, versions 1 and 2).
#pragma once

#include <gpusched/json/document.hpp>
#include <gpusched/model/spec.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace gpusched::io {

/// Reads a snapshot from text; `Cluster::build` makes it one that algorithms take.
///
/// The format is documented in docs/io.md and as JSON Schemas in docs/schema. Keys of version 2 in a document of version 1 are
/// problems. This checks shape and types; names and
/// quantities that make no sense together are found by `Cluster::build`. Where the form has mistakes, those that
/// `Cluster::build` finds in the well-formed nodes, tasks and jobs are reported with them, so that all come at once; none
/// follows from another one. Nothing half-read is returned.
/// @param text    UTF-8, at most `largest_document` bytes
/// @param source  what messages about the form call the text
/// @throws InvalidInput with every problem (the first 100), those of the form each with source, JSON pointer and what was
///         expected; a text that is not JSON gives one problem with line and column
/// Linear in the size of the text. Safe to call from several threads.
[[nodiscard]] ClusterSpec cluster_from_json(std::string_view text, std::string_view source = "<text>");

/// The same of a document that is parsed already.
[[nodiscard]] ClusterSpec cluster_from_json(const json::Document& document);

/// Reads a snapshot from a file.
/// @throws BackendError when the file cannot be read
/// @throws InvalidInput as `cluster_from_json` does
[[nodiscard]] ClusterSpec read_cluster(const std::string& path);

/// The keys that a task may have, in the order in which they are written.
[[nodiscard]] std::vector<std::string_view> task_keys();

/// Writes a snapshot as text: every field in a fixed order, except optional ones that are absent; as version 1 unless only
/// version 2 can say it (docs/io.md).
///
/// The same snapshot gives the same bytes, and reading them gives the same snapshot.
/// @param indent  spaces per level (1 .. 16), with one node, task or job per line; 0 = no white space at all
/// @throws InvalidInput for a name that is not UTF-8, or another indent
[[nodiscard]] std::string cluster_to_json(const ClusterSpec& cluster, int indent = 1);

/// Writes a snapshot to a file, as `cluster_to_json` does.
/// @throws BackendError when the file cannot be written
void write_cluster(const ClusterSpec& cluster, const std::string& path);

}  // namespace gpusched::io
