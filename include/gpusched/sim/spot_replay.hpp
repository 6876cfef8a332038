// SPDX-License-Identifier: Apache-2.0
// Spot replay: HP and spot (LP) jobs arrive, are ranked to nodes, preempt, lose work and start again.
#pragma once

#include <gpusched/allocation/named.hpp>
#include <gpusched/consolidation/options.hpp>
#include <gpusched/core/budget.hpp>
#include <gpusched/core/context.hpp>
#include <gpusched/core/fields.hpp>
#include <gpusched/model/cluster.hpp>
#include <gpusched/model/plan.hpp>
#include <gpusched/preemption/standby.hpp>
#include <gpusched/sim/spot_trace.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace gpusched::sim {

/// Rule that picks the LP pods to evict for an HP pod that does not fit.
enum class Victims : std::uint8_t {
    none,        ///< no evictions
    random,      ///< a random node that fits without its LP pods; there in random order until it fits
    spot,        ///< ASI: cheapest first until it fits, on the node that loses the least work
    spot_exact,  ///< this library: the LP pods that lose the least work (preemption::Policy::spot_exact)
};

/// Called with every plan before it is applied, with the time in seconds and the cluster before the change.
using PlanObserver = std::function<void(std::int64_t now_s, const Cluster& before, const Plan& plan)>;

/// Options of `replay_spot`.
struct SpotReplayOptions {
    /// 1 to 6 names of `allocation::rankers()` that need no workload; each breaks the ties of those before
    /// it. The default is ASI's. Here "eviction_history" adds the pods evicted from a node so far to its
    /// `NodeSpec::eviction_count`.
    std::vector<std::string> rankers{"packing", "homogeneous", "eviction_history"};
    /// Names of `allocation::filters()`; nodes must pass all of them. An HP pod first evicts only on nodes
    /// that pass the filters before evictions. If that does not help, and a filter would pass after
    /// evictions, LP pods leave until it does.
    std::vector<std::string> filters{};
    std::string gpu_picker = "tightest_gpu";  ///< a name of `allocation::gpu_pickers()`, without a workload
    Victims victims = Victims::spot;          ///< LP pods to evict for an HP pod that does not fit
    bool spot_jobs = true;                    ///< false: LP jobs never arrive
    /// Seconds before an LP pod works (image, start-up, loading its checkpoint), 0 to 10^9.
    std::int64_t start_delay_s = 120;
    /// Hours between consolidations (`consolidation::consolidate`, HP pods only), >= 0; 0 = never. Moves take
    /// no time and lose no work.
    std::int64_t consolidate_every_h = 0;
    /// Algorithm of these consolidations.
    consolidation::Preset consolidation_preset = consolidation::Preset::fast;
    /// Slowdown of GPU pods next to CPU-only pods, in thousandths, if these hold 1/n, 2/n, .., n/n of the
    /// node's cores: the values of an `allocation::SlowdownCurve`, 0 to 4000. Empty = no slowdown. The
    /// slowest pod sets the pace of its gang. If the curve is not empty, the ranker "interference" uses it.
    std::vector<std::int64_t> cpu_slowdown_milli{};
    /// The same for HP fractions next to LP fractions on their GPU, which hold 1/n, .., n/n of it. Both
    /// slowdowns of a pod add up.
    std::vector<std::int64_t> offline_slowdown_milli{};
    /// Time that victims take to leave. They hold no GPUs meanwhile, and their work stops at once. The HP job
    /// begins to work when the last of its victims has left.
    preemption::EvictionModel eviction{};
    /// Start and end of the measured period, 0 to 10^9. Jobs that arrive in it are measured, and so is
    /// allocation, even if no job runs that long. An absent end = after the last arrival.
    std::int64_t measure_from_s = 0;
    std::optional<std::int64_t> measure_until_s{};  ///< see `measure_from_s`
    std::uint64_t seed = 0;                         ///< for random victims, random rankers and eviction times
    PlanObserver observer{};
};
template <class F>
constexpr void visit_fields(std::type_identity<SpotReplayOptions>, F&& field) {
    field("rankers", &SpotReplayOptions::rankers);
    field("filters", &SpotReplayOptions::filters);
    field("gpu_picker", &SpotReplayOptions::gpu_picker);
    field("victims", &SpotReplayOptions::victims);
    field("spot_jobs", &SpotReplayOptions::spot_jobs);
    field("start_delay_s", &SpotReplayOptions::start_delay_s, within(std::int64_t{0}, longest_replay_s));
    field("consolidate_every_h", &SpotReplayOptions::consolidate_every_h, within(0, 1'000'000));
    field("consolidation_preset", &SpotReplayOptions::consolidation_preset);
    field("cpu_slowdown_milli", &SpotReplayOptions::cpu_slowdown_milli);
    field("offline_slowdown_milli", &SpotReplayOptions::offline_slowdown_milli);
    field("eviction", &SpotReplayOptions::eviction);
    field("measure_from_s", &SpotReplayOptions::measure_from_s, within(std::int64_t{0}, longest_replay_s));
    field("measure_until_s", &SpotReplayOptions::measure_until_s);
    field("seed", &SpotReplayOptions::seed);
}

/// Course of a job, in seconds. held = startup + kept + lost + open + slowed.
struct SpotJobRecord {
    std::int64_t first_start_s = -1;  ///< time at which it first had its GPUs; -1 = never
    std::int64_t finish_s = -1;       ///< time at which it finished; -1 = not yet
    /// From arrival until its first work: in the queue and for victims, without `start_delay_s`.
    std::int64_t wait_s = 0;
    std::int64_t evictions = 0;  ///< number of times that the whole gang was stopped
    std::int64_t held_s = 0;     ///< time with GPUs
    std::int64_t startup_s = 0;  ///< part of held_s before work began
    std::int64_t kept_s = 0;     ///< part of held_s: safe work (checkpoint or end); `work_s` once finished
    std::int64_t lost_s = 0;     ///< part of held_s: work that must be repeated
    std::int64_t open_s = 0;     ///< part of held_s: work since the last checkpoint, of jobs that still run
    std::int64_t slowed_s = 0;   ///< part of held_s: extra time that neighbours cost
    bool operator==(const SpotJobRecord&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<SpotJobRecord>, F&& field) {
    field("first_start_s", &SpotJobRecord::first_start_s);
    field("finish_s", &SpotJobRecord::finish_s);
    field("wait_s", &SpotJobRecord::wait_s);
    field("evictions", &SpotJobRecord::evictions);
    field("held_s", &SpotJobRecord::held_s);
    field("startup_s", &SpotJobRecord::startup_s);
    field("kept_s", &SpotJobRecord::kept_s);
    field("lost_s", &SpotJobRecord::lost_s);
    field("open_s", &SpotJobRecord::open_s);
    field("slowed_s", &SpotJobRecord::slowed_s);
}

/// State hour by hour.
struct SpotTimeline {
    std::vector<std::int64_t> time_s{};        ///< seconds
    std::vector<std::int64_t> hp_gpu_milli{};  ///< held by HP jobs, in thousandths of a GPU
    std::vector<std::int64_t> lp_gpu_milli{};  ///< held by LP jobs, in thousandths of a GPU
    std::vector<std::int64_t> hp_waiting{};    ///< waiting HP jobs
    std::vector<std::int64_t> lp_waiting{};    ///< waiting LP jobs
    [[nodiscard]] std::size_t size() const noexcept { return time_s.size(); }
    bool operator==(const SpotTimeline&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<SpotTimeline>, F&& field) {
    field("time_s", &SpotTimeline::time_s);
    field("hp_gpu_milli", &SpotTimeline::hp_gpu_milli);
    field("lp_gpu_milli", &SpotTimeline::lp_gpu_milli);
    field("hp_waiting", &SpotTimeline::hp_waiting);
    field("lp_waiting", &SpotTimeline::lp_waiting);
}

/// Distribution of a list of values; all 0 if there are none. Percentiles are values that occur (nearest
/// rank).
struct Spread {
    std::int64_t count = 0;  ///< number of values
    double mean = 0;         ///< mean
    double p50 = 0;          ///< median
    double p90 = 0;          ///< 90th percentile
    double p99 = 0;          ///< 99th percentile
    double max = 0;          ///< the largest
    bool operator==(const Spread&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<Spread>, F&& field) {
    field("count", &Spread::count);
    field("mean", &Spread::mean);
    field("p50", &Spread::p50);
    field("p90", &Spread::p90);
    field("p99", &Spread::p99);
    field("max", &Spread::max);
}

/// Figures of a spot replay. All except `jobs`, `timeline` and `end_s` cover only the measured period.
struct SpotReplayResult {
    std::vector<SpotJobRecord> jobs{};  ///< as in the trace; LP entries stay empty without `spot_jobs`
    SpotTimeline timeline{};
    std::int64_t end_s = 0;           ///< end of the replay, at or after the end of the measured period
    double hp_allocation = 0;         ///< part of the healthy GPUs that HP jobs hold, mean over time
    double lp_allocation = 0;         ///< part of the healthy GPUs that LP jobs hold, mean over time
    Spread lp_completion_s{};         ///< from arrival to end, of finished LP jobs
    Spread hp_wait_s{};               ///< `SpotJobRecord::wait_s` of HP jobs that have started
    Spread lp_wait_s{};               ///< `SpotJobRecord::wait_s` of LP jobs that have started
    std::int64_t hp_unfinished = 0;   ///< HP jobs that have not ended
    std::int64_t lp_unfinished = 0;   ///< LP jobs that have not ended
    Spread hp_slowdown{};             ///< `slowed_s` / work done, of finished HP jobs with GPUs
    Spread lp_slowdown{};             ///< `slowed_s` / work done, of finished LP jobs with GPUs
    double lp_kept_gpu_h = 0;         ///< GPU-hours of LP work that is safe
    double lp_lost_gpu_h = 0;         ///< GPU-hours of LP work wasted by evictions
    double lp_startup_gpu_h = 0;      ///< GPU-hours of LP jobs before work began
    std::int64_t lp_evictions = 0;    ///< of whole LP jobs
    std::int64_t preemptions = 0;     ///< HP jobs that evicted other jobs
    std::int64_t moves = 0;           ///< moves by consolidation
    std::int64_t consolidations = 0;  ///< consolidations that moved a task
    /// Microseconds per decision that placed a job, by the context's clock. This is the only figure that
    /// depends on more than the seed.
    Spread decision_us{};
    StopReason stop_reason = StopReason::completed;  ///< why the replay ended
};
template <class F>
constexpr void visit_fields(std::type_identity<SpotReplayResult>, F&& field) {
    field("jobs", &SpotReplayResult::jobs);
    field("timeline", &SpotReplayResult::timeline);
    field("end_s", &SpotReplayResult::end_s);
    field("hp_allocation", &SpotReplayResult::hp_allocation);
    field("lp_allocation", &SpotReplayResult::lp_allocation);
    field("lp_completion_s", &SpotReplayResult::lp_completion_s);
    field("hp_wait_s", &SpotReplayResult::hp_wait_s);
    field("lp_wait_s", &SpotReplayResult::lp_wait_s);
    field("hp_unfinished", &SpotReplayResult::hp_unfinished);
    field("lp_unfinished", &SpotReplayResult::lp_unfinished);
    field("hp_slowdown", &SpotReplayResult::hp_slowdown);
    field("lp_slowdown", &SpotReplayResult::lp_slowdown);
    field("lp_kept_gpu_h", &SpotReplayResult::lp_kept_gpu_h);
    field("lp_lost_gpu_h", &SpotReplayResult::lp_lost_gpu_h);
    field("lp_startup_gpu_h", &SpotReplayResult::lp_startup_gpu_h);
    field("lp_evictions", &SpotReplayResult::lp_evictions);
    field("preemptions", &SpotReplayResult::preemptions);
    field("moves", &SpotReplayResult::moves);
    field("consolidations", &SpotReplayResult::consolidations);
    field("decision_us", &SpotReplayResult::decision_us);
    field("stop_reason", &SpotReplayResult::stop_reason);
}

/// Replays HP and spot jobs as ASI schedules them (section 4.2), with the chosen policies.
///
/// Waiting HP jobs come first, then LP jobs, each by arrival; a job that does not fit is overtaken. A job runs
/// when all its pods are placed, each on the best-ranked node with room. An HP pod without such a node evicts LP
/// pods. One evicted pod stops its whole gang, which waits again under its original arrival time; work since the
/// last checkpoint is lost. If one pod of the HP job still finds no place, no pod is evicted.
///
/// The replay ends when all measured jobs have finished, when no event remains, or at 10^9 s with
/// StopReason::time_limit. Every change except a job's end is a plan that `verify::plan` accepts; the observer sees
/// it first.
///
/// @param known the registered rankers, filters and GPU pickers; rankers see the current cluster
/// @throws InvalidInput with every option and job out of range, and for nodes and pods that `Cluster::build`
///     rejects
[[nodiscard]] SpotReplayResult replay_spot(const SpotTrace& trace, const SpotReplayOptions& options = {},
                                           const Context& context = {},
                                           const allocation::Registries& known = allocation::registries());

/// Returns the distribution of these values.
[[nodiscard]] Spread spread_of(std::vector<double> values);

}  // namespace gpusched::sim
