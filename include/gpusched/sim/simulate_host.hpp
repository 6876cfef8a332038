// SPDX-License-Identifier: Apache-2.0
// simulate_host: a latency-sensitive tenant between a bandwidth hog and a compute hog, under the controller.
#pragma once

#include <gpusched/control/options.hpp>
#include <gpusched/core/fields.hpp>
#include <gpusched/sim/host_scenario.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace gpusched::sim {

/// One run.
struct HostRun {
    std::int32_t services = 0;   ///< protected tenants, on all hosts
    std::int64_t arrived = 0;    ///< requests of protected tenants
    std::int64_t completed = 0;  ///< of these
    std::int64_t missed = 0;     ///< completed later than the target
    std::int64_t shed = 0;       ///< lost in a pause
    std::int64_t decoded = 0;    ///< in LLM mode: of those completed (first token), whose last token came too
    /// Time in windows with a p99 above the target, of all protected tenants. The p99 is that of three windows, as the
    /// controller sees it, but requests that are lost, or wait for the end of a pause, count as above.
    double violation_s = 0;
    double excess_ms = 0;  ///< how far p99s of windows were above the target, on average over all windows
    double slice_s = 0;    ///< compute slices held by protected tenants, times seconds
    double miss_rate = 0;  ///< missed or shed, of those completed or shed, 0 to 1
    double miss_rate_completed = 0;          ///< missed, of those completed, 0 to 1
    double p50_ms = 0;                       ///< median latency of completed requests
    double p95_ms = 0;                       ///< their 95th percentile
    double p99_ms = 0;                       ///< their 99th percentile
    double p999_ms = 0;                      ///< their 99.9th percentile
    double t2_bytes = 0;                     ///< that T2 moved over PCIe, in all trios
    double t3_work_s = 0;                    ///< seconds in which T3 computed, times its quota, in all trios
    std::int32_t structural_actions = 0;     ///< changes of instance or place, rollbacks included
    std::int32_t throttles = 0;              ///< limits of block I/O
    std::int32_t quota_changes = 0;          ///< changes of the MPS quota
    std::int32_t rollbacks = 0;              ///< structural changes that were undone
    double structural_actions_per_hour = 0;  ///< the same per hour
};
template <class F>
constexpr void visit_fields(std::type_identity<HostRun>, F&& field) {
    field("services", &HostRun::services);
    field("arrived", &HostRun::arrived);
    field("completed", &HostRun::completed);
    field("missed", &HostRun::missed);
    field("shed", &HostRun::shed);
    field("decoded", &HostRun::decoded);
    field("violation_s", &HostRun::violation_s);
    field("excess_ms", &HostRun::excess_ms);
    field("slice_s", &HostRun::slice_s);
    field("miss_rate", &HostRun::miss_rate);
    field("miss_rate_completed", &HostRun::miss_rate_completed);
    field("p50_ms", &HostRun::p50_ms);
    field("p95_ms", &HostRun::p95_ms);
    field("p99_ms", &HostRun::p99_ms);
    field("p999_ms", &HostRun::p999_ms);
    field("t2_bytes", &HostRun::t2_bytes);
    field("t3_work_s", &HostRun::t3_work_s);
    field("structural_actions", &HostRun::structural_actions);
    field("throttles", &HostRun::throttles);
    field("quota_changes", &HostRun::quota_changes);
    field("rollbacks", &HostRun::rollbacks);
    field("structural_actions_per_hour", &HostRun::structural_actions_per_hour);
}

/// Runs the protected tenants for `duration_s` under the controller with these flags; requests of all of them count.
///
/// Requests arrive by a two-state Markov-modulated Poisson process, spend some time on the host, share their root's
/// PCIe with the other flows (weighted processor sharing; a flow takes no more than it asks for), and queue for one of
/// the instance's servers. Every tick the controller sees the latencies of the last three windows and the true state
/// of the others. The random numbers of request k, of toggles and of pauses do not depend on what the controller does,
/// so variants under the same seed are pairs.
///
/// Source: the model of the paper's section 2.5.1, with constants fitted to its Table 3 (it is a fit, not a prediction).
/// @throws InvalidInput when a field is out of range
/// Determinism: everything follows from `seed`. Complexity: O(requests x log of those in flight).
/// @param audit the audit log of the first host's controller is appended here, one line per window; may be null
[[nodiscard]] HostRun run_host(const HostScenario& scenario, const control::ControllerFlags& flags,
                               std::uint64_t seed, std::string* audit = nullptr);

/// The options of the controller in such a run, as `control::replay_audit` wants them for its log.
/// @throws InvalidInput when a field is out of range
[[nodiscard]] control::ControllerOptions host_options(const HostScenario& scenario,
                                                      const control::ControllerFlags& flags);

/// Runs over several seeds, throughput against the static variant under the same seeds.
struct HostResult {
    std::vector<HostRun> runs{};
    std::vector<double>
        throughput{};  ///< completed requests of protected tenants / those of the static variant under the same seed
    std::vector<double> system_throughput{};  ///< mean of the work of T1, T2 and T3 / static's
};
template <class F>
constexpr void visit_fields(std::type_identity<HostResult>, F&& field) {
    field("runs", &HostResult::runs);
    field("throughput", &HostResult::throughput);
    field("system_throughput", &HostResult::system_throughput);
}

/// Runs a variant of the controller, and the static one beside it, under each seed.
/// @throws InvalidInput when something is out of range
[[nodiscard]] HostResult simulate_host(const HostScenario& scenario, control::Variant variant,
                                       std::span<const std::uint64_t> seeds);

/// Mean queueing delay of a single server by Kingman's approximation: rho / (1 - rho) (ca^2 + cs^2) / 2 E[S].
/// @param rho utilisation, 0 to 1; infinite at 1
/// @param ca2, cs2 squared coefficients of variation of times between arrivals, and of service times
/// @param mean_service in any unit of time, that of the result
/// @throws InvalidInput when something is out of range
[[nodiscard]] double kingman_wait(double rho, double ca2, double cs2, double mean_service);

/// The condition of the paper's Claim 1 for the queue of tenant 1 to be stable under processor sharing:
/// sum of min(demand, throttle) below the capacity, and arrivals below the service rate.
/// @param demand, throttle bytes/s per tenant, infinite where not limited; equally long
/// @throws InvalidInput when something is negative or not a number, or lengths differ
[[nodiscard]] bool is_stable(std::span<const double> demand, std::span<const double> throttle,
                             double capacity, double arrival_rate, double service_rate);

}  // namespace gpusched::sim
