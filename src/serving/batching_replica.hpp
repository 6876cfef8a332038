// SPDX-License-Identifier: Apache-2.0
// One replica with continuous batching: its simulation, and the rate that it serves within latency targets.
#pragma once

#include <gpusched/serving/estimate.hpp>
#include <gpusched/serving/plan_serving.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <optional>
#include <queue>
#include <utility>
#include <vector>

namespace gpusched::serving::detail {

/// The times of requests of one kind on a replica.
struct KindTimes {
    double prefill_s = 0;  ///< seconds during which the replica does nothing else
    double lag_s = 0;      ///< seconds from there to the first token, in further stages
    double step_s = 0;     ///< seconds of a step with this request alone
    double more_s = 0;     ///< seconds that each further request in flight adds to a step
    double most = 1;       ///< most requests of the kind in flight together
    double steps = 0;      ///< tokens after the first one
};

/// Scales the times of an estimate so that a full replica serves `rate` requests per second.
/// @param one the estimate with one request in flight
/// @param full the estimate with the most requests in flight
KindTimes kind_times(const ThroughputEstimate& one, const ThroughputEstimate& full, int output, double rate);

/// A request on its replica.
struct Job {
    double arrival;
    std::size_t kind;
};
struct JobTimes {
    double first = 0;  ///< seconds from arrival to the first token
    double all = 0;    ///< seconds from arrival to the last token
};

/// A replica that works on one prompt at a time, first come, first served, as soon as the request fits;
/// decoding pauses meanwhile. Otherwise all requests in flight take a step together. A step takes the mean of
/// their steps alone, plus `more_s` for each request beyond the first.
class BatchingReplica {
  public:
    explicit BatchingReplica(const std::vector<KindTimes>& kinds) : kinds_(kinds) {}

    /// @param jobs by arrival
    std::vector<JobTimes> run(const std::vector<Job>& jobs);

  private:
    [[nodiscard]] bool fits(std::size_t kind) const;
    [[nodiscard]] double step() const;
    void admit(std::size_t kind, std::size_t job);
    void leave(std::size_t kind);

    using Running = std::pair<double, std::size_t>;  // its last step, the job
    const std::vector<KindTimes>& kinds_;
    std::priority_queue<Running, std::vector<Running>, std::greater<>> running_;
    std::deque<std::size_t> waiting_;
    double step_ = 0;              // steps so far
    double alone_ = 0, more_ = 0;  // sums of step_s and more_s over the requests in flight
    double room_ = 0;              // part of the replica that they fill
};

/// The smallest value that `percent` of the values do not exceed; 0 without values.
/// @param sorted ascending
/// @throws InvalidInput unless `percent` is from 0 to 100
double percentile_of(const std::vector<double>& sorted, double percent);

/// The times of a request that have percentiles: to the first token, per further token, to the last token.
enum class TokenTime : std::uint8_t { first, each, last };

/// A percentile that targets limit and plans report.
struct LatencyPercentile {
    const char* name;
    TokenTime time;
    double percent;
    std::optional<double> LatencyTargets::*target;
    std::optional<double> PlannedLatency::*planned;
    bool on_request = false;  ///< plans report it only with a target
};
inline constexpr std::array<LatencyPercentile, 12> latency_percentiles{{
    {"ttft_p50_s", TokenTime::first, 50, &LatencyTargets::ttft_p50_s, &PlannedLatency::ttft_p50_s},
    {"ttft_p90_s", TokenTime::first, 90, &LatencyTargets::ttft_p90_s, &PlannedLatency::ttft_p90_s},
    {"ttft_p95_s", TokenTime::first, 95, &LatencyTargets::ttft_p95_s, &PlannedLatency::ttft_p95_s, true},
    {"ttft_p99_s", TokenTime::first, 99, &LatencyTargets::ttft_p99_s, &PlannedLatency::ttft_p99_s},
    {"tpot_p50_s", TokenTime::each, 50, &LatencyTargets::tpot_p50_s, &PlannedLatency::tpot_p50_s},
    {"tpot_p90_s", TokenTime::each, 90, &LatencyTargets::tpot_p90_s, &PlannedLatency::tpot_p90_s},
    {"tpot_p95_s", TokenTime::each, 95, &LatencyTargets::tpot_p95_s, &PlannedLatency::tpot_p95_s, true},
    {"tpot_p99_s", TokenTime::each, 99, &LatencyTargets::tpot_p99_s, &PlannedLatency::tpot_p99_s},
    {"latency_p50_s", TokenTime::last, 50, &LatencyTargets::latency_p50_s, &PlannedLatency::latency_p50_s,
     true},
    {"latency_p90_s", TokenTime::last, 90, &LatencyTargets::latency_p90_s, &PlannedLatency::latency_p90_s,
     true},
    {"latency_p95_s", TokenTime::last, 95, &LatencyTargets::latency_p95_s, &PlannedLatency::latency_p95_s,
     true},
    {"latency_p99_s", TokenTime::last, 99, &LatencyTargets::latency_p99_s, &PlannedLatency::latency_p99_s,
     true},
}};

/// A percentile and its upper limit.
struct LatencyTarget : LatencyPercentile {
    double seconds;
};
std::vector<LatencyTarget> list_of(const LatencyTargets& targets);

/// Latencies of simulated requests.
class LatencySamples {
  public:
    /// @param steps tokens of the request after the first one
    void add(const JobTimes& times, double steps);
    /// Whether the requests meet all of these targets. Sorts the latencies.
    [[nodiscard]] bool meet(const std::vector<LatencyTarget>& targets);

  private:
    std::array<std::vector<double>, 3> seconds_{};  ///< by `TokenTime`
};

/// The rows with a measured latency, by load.
std::vector<MeasuredThroughput> rows_with(std::vector<MeasuredThroughput> rows, TokenTime time);
/// The measured latency of a row, if it has one.
inline std::optional<double> latency_of(const MeasuredThroughput& row, TokenTime time) {
    return time == TokenTime::first ? row.ttft_s : time == TokenTime::each ? row.tpot_s : std::nullopt;
}

/// The capacity by measured latencies, and the targets without measurements.
struct MeasuredTargets {
    double capacity = std::numeric_limits<double>::infinity();  ///< requests/s within the measured targets
    std::vector<LatencyTarget> unmeasured{};
};
/// @param rows of one deployment and workload
MeasuredTargets measured_targets(const std::vector<MeasuredThroughput>& rows,
                                 const std::vector<LatencyTarget>& targets);

/// The latency of an idle replica at a percentile.
using IdleLatency = std::function<double(const LatencyPercentile&)>;

/// Whether a replica meets the targets at some load, by measured latencies if there are any, else as an idle
/// replica.
bool can_keep(const std::vector<MeasuredThroughput>& rows, const IdleLatency& idle,
              const std::vector<LatencyTarget>& targets);

/// The measured latency at a load, linear between the loads of the rows and constant beyond them; none
/// without measurements.
/// @param rows of one deployment and workload
std::optional<double> latency_at(const std::vector<MeasuredThroughput>& rows, TokenTime time, double load);

/// Simulates the requests/s within the targets, at most `limit`, by bisection to 1 %, for a replica that keeps
/// them when it is idle.
/// @param spacing times between arrivals at one request per second
/// @param kinds   the kind of each request, an index of `times`
/// @param stop    ends the bisection; the result is then too small
double simulated_capacity(const std::vector<KindTimes>& times, const std::vector<LatencyTarget>& targets,
                          double limit, const std::vector<double>& spacing,
                          const std::vector<std::size_t>& kinds, const std::function<bool()>& stop);

/// The source of latencies that are simulated with a throughput of this source.
inline Source simulated_source(Source throughput) {
    return throughput == Source::measured ? Source::calibrated : throughput;
}

/// Times between arrivals of a Poisson process of one request per second.
std::vector<double> poisson_spacing(int requests);

}  // namespace gpusched::serving::detail
