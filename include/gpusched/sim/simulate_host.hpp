// SPDX-License-Identifier: Apache-2.0
// Simulates a latency-sensitive tenant that shares a host with a bandwidth hog and a compute hog, under the
// controller.
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

/// Figures of one run.
struct HostRun {
    std::int32_t services = 0;   ///< protected tenants, on all hosts
    std::int64_t arrived = 0;    ///< requests of protected tenants
    std::int64_t completed = 0;  ///< requests that completed
    std::int64_t missed = 0;     ///< requests that completed later than the target
    std::int64_t shed = 0;       ///< requests lost in a pause
    std::int64_t decoded = 0;    ///< LLM mode: completed requests (first token) with their last token, too
    /// Time in windows with a p99 above the target, summed over all protected tenants. The p99 covers three
    /// windows, as the controller sees it, but requests that are lost or wait for the end of a pause count as
    /// above the target.
    double violation_s = 0;
    double excess_ms = 0;                    ///< excess of window p99s over the target, mean over all windows
    double slice_s = 0;                      ///< compute slices held by protected tenants, times seconds
    double miss_rate = 0;                    ///< missed or shed, of those completed or shed, 0 to 1
    double miss_rate_completed = 0;          ///< missed, of those completed, 0 to 1
    double p50_ms = 0;                       ///< median latency of completed requests
    double p95_ms = 0;                       ///< their 95th percentile
    double p99_ms = 0;                       ///< their 99th percentile
    double p999_ms = 0;                      ///< their 99.9th percentile
    double t2_bytes = 0;                     ///< moved over PCIe by T2, in all trios
    double t3_work_s = 0;                    ///< seconds in which T3 computed, times its quota, in all trios
    std::int32_t structural_actions = 0;     ///< changes of instance or place, including rollbacks
    std::int32_t throttles = 0;              ///< limits on block I/O
    std::int32_t quota_changes = 0;          ///< changes of the MPS quota
    std::int32_t rollbacks = 0;              ///< structural changes that were undone
    double structural_actions_per_hour = 0;  ///< structural_actions per hour
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

/// Runs the protected tenants for `duration_s` under the controller with these flags, and counts the requests
/// of all of them.
///
/// Requests arrive by a two-state Markov-modulated Poisson process and spend some time on the host. Then they
/// share their root's PCIe with the other flows (weighted processor sharing; a flow takes no more than its
/// demand), and queue for one of the instance's servers. Every tick the controller sees the latencies of the
/// last three windows and the true state of the other tenants.
///
/// The random numbers of request k, of toggles and of pauses do not depend on the controller's actions.
/// Variants under the same seed can therefore be compared in pairs.
///
/// Source: the model of the paper's section 2.5.1, with constants fitted to its Table 3 (a fit, not a
/// prediction).
/// @throws InvalidInput when a field is out of range
/// Determinism: `seed` determines the run. Complexity: O(requests x log of the requests in flight).
/// @param audit if not null, the audit log of the first host's controller is appended here, one line per
///     window
[[nodiscard]] HostRun run_host(const HostScenario& scenario, const control::ControllerFlags& flags,
                               std::uint64_t seed, std::string* audit = nullptr);

/// Returns the controller's options in such a run, as `control::replay_audit` needs them for its log.
/// @throws InvalidInput when a field is out of range
[[nodiscard]] control::ControllerOptions host_options(const HostScenario& scenario,
                                                      const control::ControllerFlags& flags);

/// Runs over several seeds; throughput is relative to the static variant under the same seeds.
struct HostResult {
    std::vector<HostRun> runs{};
    /// Completed requests of protected tenants / completed requests of the static variant under the same
    /// seed.
    std::vector<double> throughput{};
    std::vector<double> system_throughput{};  ///< mean of the work of T1, T2 and T3 / that of static
};
template <class F>
constexpr void visit_fields(std::type_identity<HostResult>, F&& field) {
    field("runs", &HostResult::runs);
    field("throughput", &HostResult::throughput);
    field("system_throughput", &HostResult::system_throughput);
}

/// Runs a variant of the controller and the static variant under each seed.
/// @throws InvalidInput when an argument is out of range
[[nodiscard]] HostResult simulate_host(const HostScenario& scenario, control::Variant variant,
                                       std::span<const std::uint64_t> seeds);

/// Returns the mean queueing delay of a single server by Kingman's approximation,
/// rho / (1 - rho) (ca^2 + cs^2) / 2 E[S].
/// @param rho utilisation, 0 to 1; the result is infinite at 1
/// @param ca2, cs2 squared coefficients of variation of inter-arrival times and of service times
/// @param mean_service in any unit of time, which is also that of the result
/// @throws InvalidInput when an argument is out of range
[[nodiscard]] double kingman_wait(double rho, double ca2, double cs2, double mean_service);

/// Returns true if the queue of tenant 1 is stable under processor sharing by the paper's Claim 1: sum of
/// min(demand, throttle) below the capacity, and arrivals below the service rate.
/// @param demand, throttle bytes/s per tenant, infinite if not limited; of equal length
/// @throws InvalidInput when a number is negative or NaN, or lengths differ
[[nodiscard]] bool is_stable(std::span<const double> demand, std::span<const double> throttle,
                             double capacity, double arrival_rate, double service_rate);

}  // namespace gpusched::sim
