// SPDX-License-Identifier: Apache-2.0
// Replay: the tasks of a trace arrive on its nodes one by one and are placed by a policy.
#pragma once

#include <gpusched/allocation/named.hpp>
#include <gpusched/core/budget.hpp>
#include <gpusched/core/context.hpp>
#include <gpusched/core/fields.hpp>
#include <gpusched/model/cluster.hpp>
#include <gpusched/model/spec.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace gpusched::sim {

/// How to replay a trace.
struct ReplayOptions {
    /// A name of `allocation::placements()`: "random", "first_fit", "best_fit", "least_allocated",
    /// "most_allocated", "dot_product", "gpu_packing", "gpu_clustering", "fgd", "asi", "power_of_d", "expected_fill".
    std::string placement = "least_allocated";
    /// Stop after the events of that second; absent = after the last arrival. Not with `shuffle` or `resample_to`.
    std::optional<std::int64_t> until{};
    bool ignore_departures = false;  ///< tasks stay for ever
    /// Append or remove random tasks until they ask for that many times the GPU capacity (see resample.hpp). Implies
    /// `shuffle`, and shuffles the nodes as well: ties between nodes do not depend on their names.
    std::optional<double> resample_to{};
    bool shuffle = false;    ///< arrive in random order, without times and departures
    std::uint64_t seed = 0;  ///< where random choices start
};
template <class F>
constexpr void visit_fields(std::type_identity<ReplayOptions>, F&& field) {
    field("placement", &ReplayOptions::placement);
    field("until", &ReplayOptions::until);
    field("ignore_departures", &ReplayOptions::ignore_departures);
    field("resample_to", &ReplayOptions::resample_to);
    field("shuffle", &ReplayOptions::shuffle);
    field("seed", &ReplayOptions::seed);
}

/// What happened, one entry per arrival, in columns of equal length.
struct Timeline {
    std::vector<std::int64_t> time;                 ///< seconds; the arrival's number where times are ignored
    std::vector<std::int64_t> requested_gpu_milli;  ///< asked for by all arrivals so far, placed or not
    std::vector<std::int64_t> allocated_gpu_milli;  ///< of the tasks that run after this arrival
    std::vector<std::int64_t> running;              ///< tasks that run after this arrival
    std::vector<std::int64_t> unplaced;             ///< arrivals so far that fitted nowhere
    /// Expected fragmentation in GPUs (FGD's metric) against the typical tasks of the trace.
    std::vector<double> fragmented_gpus;
    [[nodiscard]] std::size_t size() const noexcept { return time.size(); }
    bool operator==(const Timeline&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<Timeline>, F&& field) {
    field("time", &Timeline::time);
    field("requested_gpu_milli", &Timeline::requested_gpu_milli);
    field("allocated_gpu_milli", &Timeline::allocated_gpu_milli);
    field("running", &Timeline::running);
    field("unplaced", &Timeline::unplaced);
    field("fragmented_gpus", &Timeline::fragmented_gpus);
}

struct ReplayResult {
    /// The state at the end: the tasks that run, and those that arrived and fitted nowhere (pending). `now` is the
    /// end's time, start times are those of the placements.
    Cluster cluster{};
    std::vector<std::string> unplaced{};  ///< names, in order of arrival
    Timeline timeline{};
    StopReason stop_reason = StopReason::completed;
};

/// Replays `trace` with a policy chosen by name, of those that `known` has.
///
/// Tasks arrive in the order of their creation times (those of one second in the order of the trace) and leave at
/// their deletion times, departures first. Each is tried once: one that fits nowhere is left out for good. Jobs are
/// not treated as gangs. Where a policy finds several nodes equally good, the smallest node name wins.
///
/// @throws InvalidInput for an unknown placement, options that exclude each other or are out of range, and for a trace
///         that `Cluster::build` does not accept (tasks of a trace must be pending)
///
/// Complexity: one decision of the policy per arrival. Deterministic in trace, options and seed.
[[nodiscard]] ReplayResult replay(const Trace& trace, const ReplayOptions& options = {},
                                  const Context& context = {},
                                  const allocation::Registries& known = allocation::registries());

/// The same with a policy of the caller's own; `options.placement` is not looked at.
/// @throws InvalidInput also when the policy answers with a place where the task does not fit
[[nodiscard]] ReplayResult replay(const Trace& trace, allocation::AnyPlacement policy,
                                  const ReplayOptions& options = {}, const Context& context = {});

}  // namespace gpusched::sim
