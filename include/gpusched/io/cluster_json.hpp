// SPDX-License-Identifier: Apache-2.0
// Snapshots as `gpusched.cluster` documents (JSON, versions 1 and 2).
#pragma once

#include <gpusched/json/document.hpp>
#include <gpusched/model/spec.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace gpusched::io {

/// Reads a snapshot from text; `Cluster::build` turns it into a cluster for the algorithms.
///
/// The format is documented in docs/io.md and as JSON Schemas in docs/schema. Keys of version 2 in a document
/// of version 1 are problems. This checks shape and types; `Cluster::build` checks names and quantities
/// against each other. If the form has mistakes, the problems that `Cluster::build` finds in the well-formed
/// nodes, tasks and jobs are reported with them, so that all come at once; none follows from another one. A
/// partly read snapshot is never returned.
/// @param text    UTF-8, at most `largest_document` bytes
/// @param source  name of the text in messages
/// @throws InvalidInput with every problem (the first 100), those of the form each with source, JSON pointer
///         and expectation; a text that is not JSON gives one problem with line and column
/// Linear in the size of the text. Safe to call from several threads.
[[nodiscard]] ClusterSpec cluster_from_json(std::string_view text, std::string_view source = "<text>");

/// The same of a parsed document.
[[nodiscard]] ClusterSpec cluster_from_json(const json::Document& document);

/// Reads a snapshot from a file.
/// @throws BackendError if the file cannot be read
/// @throws InvalidInput as `cluster_from_json` does
[[nodiscard]] ClusterSpec read_cluster(const std::string& path);

/// The keys that a task may have, in the order in which they are written.
[[nodiscard]] std::vector<std::string_view> task_keys();

/// Writes a snapshot as text: every field in a fixed order, except optional ones that are absent; as version
/// 1 if it can hold the snapshot, else as version 2 (docs/io.md).
///
/// The same snapshot gives the same bytes, and reading them gives the same snapshot.
/// @param indent  spaces per level (1 .. 16), with one node, task or job per line; 0 = no white space
/// @throws InvalidInput for a name that is not UTF-8, or another indent
[[nodiscard]] std::string cluster_to_json(const ClusterSpec& cluster, int indent = 1);

/// Writes a snapshot to a file, as `cluster_to_json` does.
/// @throws BackendError if the file cannot be written
void write_cluster(const ClusterSpec& cluster, const std::string& path);

}  // namespace gpusched::io
