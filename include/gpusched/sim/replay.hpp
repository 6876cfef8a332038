// SPDX-License-Identifier: Apache-2.0
// Replays a trace: its tasks arrive on its nodes one by one, and a policy places them.
#pragma once

#include <gpusched/allocation/named.hpp>
#include <gpusched/core/budget.hpp>
#include <gpusched/core/context.hpp>
#include <gpusched/core/fields.hpp>
#include <gpusched/core/rng.hpp>
#include <gpusched/model/cluster.hpp>
#include <gpusched/model/spec.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace gpusched::sim {

/// Makes the trace's tasks request `ratio` times the GPUs of its nodes, and shuffles them.
///
/// Follows the released experiment of Weng et al. (ATC '23). Random tasks of the list, with replacement and
/// under new names, are appended until the next one would exceed the demand. If the list already requests
/// more, random tasks are removed until it does not. A task keeps its request, its job and its times.
///
/// @param ratio demand over capacity (healthy GPUs), above 0 and at most 1000
/// @param originals if not null, set to the index in the trace of each task of the result
/// @throws InvalidInput when `ratio` is out of range, or no task requests a GPU
/// Complexity: O(tasks).
[[nodiscard]] Trace resample(const Trace& trace, double ratio, Rng& rng,
                             std::vector<std::size_t>* originals = nullptr);

/// Options of `replay`.
struct ReplayOptions {
    /// A name of `allocation::placements()`: "random", "first_fit", "best_fit", "least_allocated",
    /// "most_allocated", "dot_product", "gpu_packing", "gpu_clustering", "fgd", "asi", "power_of_d" or
    /// "expected_fill".
    std::string placement = "least_allocated";
    /// Stops after the events of that second; absent = after the last arrival. Not with `shuffle` or
    /// `resample_to`.
    std::optional<std::int64_t> until{};
    bool ignore_departures = false;  ///< tasks stay until the end
    /// Appends or removes random tasks until they request that many times the GPU capacity (see
    /// `resample`). Implies `shuffle`, and also shuffles the nodes, so that ties between nodes do not
    /// depend on their names.
    std::optional<double> resample_to{};
    bool shuffle = false;    ///< tasks arrive in random order, without times and departures
    std::uint64_t seed = 0;  ///< determines all random choices
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

/// The course of a replay: one entry per arrival, in columns of equal length.
struct Timeline {
    std::vector<std::int64_t> time;                 ///< seconds; the arrival's number if times are ignored
    std::vector<std::int64_t> requested_gpu_milli;  ///< requested by all arrivals so far, placed or not
    std::vector<std::int64_t> allocated_gpu_milli;  ///< held by the tasks that run after this arrival
    std::vector<std::int64_t> running;              ///< tasks that run after this arrival
    std::vector<std::int64_t> unplaced;             ///< arrivals so far that fitted on no node
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

/// Result of `replay`.
struct ReplayResult {
    /// The final state: the tasks that run, and the unplaced tasks (pending). `now` is the time of the end;
    /// start times are those of the placements.
    Cluster cluster{};
    std::vector<std::string> unplaced{};  ///< names of tasks that fitted on no node, in order of arrival
    Timeline timeline{};
    StopReason stop_reason = StopReason::completed;
};

/// Replays `trace` with a policy chosen by name from `known`.
///
/// Tasks arrive in the order of their creation times; tasks of the same second arrive in the order of the
/// trace. They leave at their deletion times, and departures come first. Each task is tried once: a task that
/// fits on no node is never retried. Jobs are not treated as gangs. If a policy finds several nodes equally
/// good, the smallest node name wins.
///
/// @throws InvalidInput for an unknown placement, options that exclude each other or are out of range, and
///         for a trace that `Cluster::build` does not accept (tasks of a trace must be pending)
///
/// Complexity: one decision of the policy per arrival. Deterministic in trace, options and seed.
[[nodiscard]] ReplayResult replay(const Trace& trace, const ReplayOptions& options = {},
                                  const Context& context = {},
                                  const allocation::Registries& known = allocation::registries());

/// Replays `trace` with a policy of the caller; ignores `options.placement`.
/// @throws InvalidInput also when the policy returns a placement that does not fit
[[nodiscard]] ReplayResult replay(const Trace& trace, allocation::AnyPlacement policy,
                                  const ReplayOptions& options = {}, const Context& context = {});

}  // namespace gpusched::sim
