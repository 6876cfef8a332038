// SPDX-License-Identifier: Apache-2.0
// Spot traces: high-priority (HP) and spot (LP) jobs over time, as input of `replay_spot`, generated or
// read from the Alibaba spot-GPU lists of nodes and jobs (2026).
#pragma once

#include <gpusched/core/fields.hpp>
#include <gpusched/model/spec.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace gpusched::sim {

/// Longest replay and largest time in a trace, about 31 years.
inline constexpr std::int64_t longest_replay_s = 1'000'000'000;

/// A gang: equal pods that run together or not at all.
struct SpotJob {
    /// Spec of each pod, pending; its name is the job's. `priority_class` is HP or LP; only LP pods are
    /// evicted, unless `preemptible` is false. `checkpoint_interval` counts seconds of work; 0 = no
    /// checkpoints: an eviction loses all work.
    TaskSpec pod{};
    std::int64_t pods = 1;       ///< number of pods, 1 to 10,000
    std::int64_t arrival_s = 0;  ///< seconds since the trace began, 0 to 10^9
    std::int64_t work_s = 1;     ///< running time without interruption, 1 to 10^9 s
    bool operator==(const SpotJob&) const = default;
};

/// Empty nodes, and the jobs that arrive on them.
struct SpotTrace {
    std::vector<NodeSpec> nodes{};
    std::vector<SpotJob> jobs{};  ///< in order of arrival
    bool operator==(const SpotTrace&) const = default;
};

/// Options of `generate_spot_trace`. The defaults follow the ASI paper; docs/sim.md gives the source of each
/// figure.
struct SpotTraceOptions {
    /// GPU model of the only pool: nodes of one kind of the "asi" preset ("T4" selects the kind with 4 GPUs).
    std::string gpu_model = "H20";
    std::int64_t nodes = 256;  ///< number of nodes, 1 to 100,000
    std::int64_t hours = 288;  ///< period in which jobs arrive, 1 to 100,000
    double hp_load = 0.68;  ///< running time x GPUs requested by HP jobs, as a part of all GPU-time, 0 to 2
    double lp_load = 0.25;  ///< the same for LP jobs
    /// Running time x cores requested by CPU-only jobs, as a part of all core-time, 0 to 2. They are LP jobs:
    /// low priority, preemptible.
    double cpu_load = 0;
    double hp_swing = 0.5;     ///< HP arrivals over the day: 1 + swing at 15:00, 1 - swing at 3:00, 0 to 1
    double lp_runtime = 0.5;   ///< running times of LP jobs, relative to HP jobs, above 0, at most 10
    double no_checkpoint = 0;  ///< part of the LP jobs without checkpoints, 0 to 1
    std::uint64_t seed = 0;    ///< determines all random choices
};
template <class F>
constexpr void visit_fields(std::type_identity<SpotTraceOptions>, F&& field) {
    field("gpu_model", &SpotTraceOptions::gpu_model);
    field("nodes", &SpotTraceOptions::nodes, within(1, 100'000));
    field("hours", &SpotTraceOptions::hours, within(1, 100'000));
    field("hp_load", &SpotTraceOptions::hp_load, within(0, 2));
    field("lp_load", &SpotTraceOptions::lp_load, within(0, 2));
    field("cpu_load", &SpotTraceOptions::cpu_load, within(0, 2));
    field("hp_swing", &SpotTraceOptions::hp_swing, within(0, 1));
    field("lp_runtime", &SpotTraceOptions::lp_runtime);
    field("no_checkpoint", &SpotTraceOptions::no_checkpoint, within(0, 1));
    field("seed", &SpotTraceOptions::seed);
}

/// Generates HP and spot jobs from the figures that the ASI paper publishes. `read_spot_trace` reads recorded
/// jobs.
///
/// HP, LP and CPU-only jobs come from independent streams: changing the options of one kind does not change
/// the jobs of the others.
///
/// @throws InvalidInput with every option out of range
/// Complexity: O(seconds + jobs). The same options give the same bits on every platform.
[[nodiscard]] SpotTrace generate_spot_trace(const SpotTraceOptions& options = {});

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
/// (seconds), `job_type` (HP or Spot). Columns may come in any order; `organization` is ignored.
///
/// A job is a gang of its workers and runs on its model only. HP becomes priority 1000, Spot becomes LP with
/// priority 200. Jobs are sorted by `submit_time`, then in the order of the list. Those that fit on
/// no node stay in the trace. Memory is 0, network positions are unknown. A `gpu_request` below
/// 1 is a fraction of one GPU, and a `duration` of 0 counts as one second.
/// @throws BackendError when a file cannot be read
/// @throws InvalidInput when an option is out of range, and with every problem (the first 100), each with file,
///     line and column name
[[nodiscard]] SpotTrace read_spot_trace(const std::string& node_csv, const std::string& job_csv,
                                        const SpotListOptions& options = {});

/// Does the same from text; messages call the two texts "<nodes>" and "<jobs>".
[[nodiscard]] SpotTrace spot_trace_from_csv(std::string_view nodes, std::string_view jobs,
                                            const SpotListOptions& options = {});

}  // namespace gpusched::sim
