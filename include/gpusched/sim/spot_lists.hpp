// SPDX-License-Identifier: Apache-2.0
// Reads the Alibaba spot-GPU lists of nodes and jobs (2026) as spot traces.
#pragma once

#include <gpusched/core/fields.hpp>
#include <gpusched/sim/spot_trace.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

namespace gpusched::sim {

/// Options of `read_spot_trace`.
struct SpotListOptions {
    /// Seconds of work between checkpoints of spot jobs, which the lists do not contain. 0 = no checkpoints:
    /// an eviction loses all work.
    std::int64_t checkpoint_interval = 0;
};
template <class F>
constexpr void visit_fields(std::type_identity<SpotListOptions>, F&& field) {
    field("checkpoint_interval", &SpotListOptions::checkpoint_interval, within(0, 1'000'000'000));
}

/// Reads the node and job lists of Alibaba's spot-GPU trace (clusterdata, cluster-trace-v2026-spot-gpu:
/// `node_info_df.csv`, `job_info_df.csv`; Duan et al., ASPLOS '26) for `replay_spot`.
///
/// Nodes: `node_name`, `gpu_model`, `gpu_capacity_num`, `cpu_num` (cores). Jobs: `job_name`, `gpu_model`,
/// `cpu_request` (cores) and `gpu_request`, both of each worker, `worker_num`, `submit_time`, `duration`
/// (seconds), `job_type` (HP or Spot), and `organization`, which is ignored. Columns may come in any order.
///
/// A job is a gang of its workers and runs on its model only. HP becomes priority 1000, Spot becomes LP with
/// priority 200, as in generated spot traces. Jobs are sorted by `submit_time`; jobs of the same second keep
/// the order of the list. The lists contain neither memory (0) nor network positions (unknown). A
/// `gpu_request` below 1 is a fraction of one GPU, and a `duration` of 0 counts as one second. Jobs that fit
/// on no node stay in the trace.
///
/// @throws BackendError when a file cannot be read
/// @throws InvalidInput when an option is out of range, and with every problem (the first 100), each with
///     file, line and column name: missing or unknown columns, invalid or out-of-range numbers, duplicate
///     names
[[nodiscard]] SpotTrace read_spot_trace(const std::string& node_csv, const std::string& job_csv,
                                        const SpotListOptions& options = {});

/// Does the same from text; messages call the two texts "<nodes>" and "<jobs>".
[[nodiscard]] SpotTrace spot_trace_from_csv(std::string_view nodes, std::string_view jobs,
                                            const SpotListOptions& options = {});

}  // namespace gpusched::sim
