// SPDX-License-Identifier: Apache-2.0
// The Alibaba openb lists of nodes and pods (2023) as traces.
#pragma once

#include <gpusched/core/fields.hpp>
#include <gpusched/model/spec.hpp>

#include <string>
#include <string_view>
#include <type_traits>

namespace gpusched::io {

struct OpenbOptions {
    bool gpu_nodes_only = true;  ///< leave out nodes without GPUs
};
template <class F>
constexpr void visit_fields(std::type_identity<OpenbOptions>, F&& field) {
    field("gpu_nodes_only", &OpenbOptions::gpu_nodes_only);
}

/// Reads the node and pod lists of Alibaba's openb trace (clusterdata, cluster-trace-gpu-v2023; Weng et al.,
/// ATC '23).
///
/// Nodes: `sn`, `cpu_milli`, `memory_mib`, `gpu` (how many), `model`. Pods: `name`, `cpu_milli`,
/// `memory_mib`, `num_gpu`, `gpu_milli` (of each GPU), and in some lists `gpu_spec` (acceptable models,
/// separated by "|"), `qos`, `pod_phase` (not used), `creation_time`, `deletion_time`, `scheduled_time`
/// (seconds; empty = absent). Columns may come in any order. Pods keep the order of the list and stay in the
/// trace even if no node could hold them. `num_gpu` 0 means no GPU, for any `gpu_milli`.
///
/// `qos` gives the priority class: LS, LSR, LSE, SYSTEM and Guaranteed become HP, BE and BestEffort become
/// LP, Burstable and an empty field become other. Without times, tasks are created at 0 and do not end.
/// @throws BackendError if a file cannot be read
/// @throws InvalidInput with every problem (the first 100), each with file, line and column name: missing or
///         unknown columns, numbers that are malformed or out of range, a fraction of several GPUs, times
///         that run backwards, duplicate names
[[nodiscard]] Trace read_openb(const std::string& node_csv, const std::string& pod_csv,
                               const OpenbOptions& options = {});

/// The same from text; messages call the two "<nodes>" and "<pods>".
[[nodiscard]] Trace openb_from_csv(std::string_view nodes, std::string_view pods,
                                   const OpenbOptions& options = {});

}  // namespace gpusched::io
