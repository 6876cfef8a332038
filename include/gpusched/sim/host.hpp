// Host simulator: a latency-sensitive tenant between a bandwidth hog and a compute hog, under the controller.
#pragma once

#include <gpusched/config.hpp>
#include <gpusched/control/options.hpp>
#include <gpusched/core/enum_names.hpp>
#include <gpusched/sim/llm_trace.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace GPUSCHED_NAMESPACE::sim {

/// A kind of request: how often, how much it transfers, and how long it computes on a 2g instance by itself.
struct RequestClass {
    double share = 1;
    double bytes = 0;
    double compute_ms = 0;
};

/// What happens to requests during a structural change.
enum class PauseMode : std::uint8_t {
    shed,              ///< they are lost
    queue,             ///< they wait
    make_before_break  ///< none pause where the new instance can exist beside the old one; else they are lost
};
constexpr auto enum_names(PauseMode) {
    return name_table<PauseMode>({
        {PauseMode::shed, "shed"},
        {PauseMode::queue, "queue"},
        {PauseMode::make_before_break, "mbb"},
    });
}

/// A host with two PCIe roots, one GPU each, and three tenants: T1 (protected), T2 (PCIe and block I/O on root 0),
/// T3 (MPS client in T1's instance); or four, with another protected one on GPU 1. The defaults are scenario `table3`,
/// frozen.
struct HostScenario {
    std::string device = "A100-40GB";
    std::string start_profile = "2g";
    std::int32_t start_slice = 0;
    double duration_s = 3600;
    double window_s = 2;
    double tau_ms = 15;  ///< target: a request of a protected tenant that takes longer is missed
    std::optional<double> threshold_ms{};  ///< p99 above which the controller acts; absent = the target

    double root_bytes_per_s = 22e9;
    std::vector<double> background_weight{0.15,
                                          0.35};  ///< per root; the demand is as large a part of the capacity

    double t2_weight = 1.2;  ///< a request of T1 has weight 1
    double t2_bytes_per_s = 12e9;
    double t2_on_s = 600, t2_off_s = 260;  ///< means of Erlang-2 times
    double t2_bytes_per_io_byte = 4;       ///< PCIe traffic per byte of block I/O, and so under a limit of it

    double t3_on_s = 360, t3_off_s = 300;  ///< means of Erlang-2 times
    double beta = 0.6;                     ///< SM_eff = SM / (1 + beta quota) while T3 computes
    bool quota_live = true;                ///< false: a quota holds from T3's next start on

    std::vector<double> rates_per_s{40, 80};  ///< arrivals in the two states
    std::vector<double> state_s{20, 4};       ///< mean times in them
    std::vector<RequestClass> classes{{0.67, 4e6, 6.0}, {0.20, 20e6, 10.8}, {0.13, 36e6, 13.3}};
    double noise_sigma = 0.035;     ///< of the logarithm of compute times
    double serial_fraction = 0.82;  ///< f of S = K (f + (1 - f) SM_2g / SM_eff)
    std::int32_t servers = 4;
    double host_base_ms = 0.6, host_jitter_ms = 0.15, io_jitter_ms = 0.35;

    double pause_s = 18, pause_sigma_s = 6;
    PauseMode pause_mode = PauseMode::make_before_break;

    double counter_noise = 0;  ///< sigma of the logarithm of PCIe counters; below 0: there are none
    double failure_rate = 0;   ///< probability that a change fails and is undone
    bool neighbours =
        false;  ///< instances of others in the layouts: 2g at 4 and 1g at 6 of GPU 0, 3g at 4 of GPU 1
    bool second_service =
        false;  ///< T4, protected like T1: same profile and slice, on GPU 1, without a client
    /// Where T1 (and T4) start instead; empty: `start_profile` and `start_slice` of GPU 0 (and 1).
    std::vector<control::Configuration> starts{};

    /// LLM mode where there are any: requests with tokens instead of classes, one at a time in the prefill stage
    /// (`servers` of them), then in the decode stage, all at once. What counts as latency is the time to first token.
    std::vector<LlmRequest> llm_requests{};
    double llm_requests_per_s = 20;  ///< on average: their times are stretched; each seed starts elsewhere
    double prefill_ms = 8;           ///< of any request on a 2g instance by itself
    double prefill_ms_per_token = 0.02;  ///< more for each token of the prompt
    double prompt_bytes_per_token = 4096;
    double decode_ms_per_token = 8;  ///< of a request by itself
    double decode_slows = 0.01;      ///< by how much each request in decode slows prefill, as a part

    // Of the controller. Its guards have one level each here: the lowest quota and the highest limit of the paper's Table 1.
    std::vector<std::int32_t> io_levels_mb_s{500};
    std::vector<std::int32_t> quota_levels{50};
    std::int32_t persistence = 3;  ///< windows above the threshold before anything is done
    std::int32_t dwell = 256;
};

/// A scenario by name: `table3`; harder: `noisy_counters`, `no_counters`, `quota_at_restart`, `neighbours`, `faults`,
/// `two_services`; `mixed`, which is all of them at once on another part with other loads, frozen before the policy
/// `ours` was written; `llm`, on a generated trace (put a real one in `llm_requests`).
/// @throws InvalidInput for another name
[[nodiscard]] HostScenario host_scenario(std::string_view name);

/// @throws InvalidInput with every field out of range
void validate(const HostScenario& scenario);

/// Every way to place the protected tenants for good, as `starts` of the scenario: all that differs to them (GPU and
/// profile) once, where there is room beside the neighbours and beside each other, with no less memory than at their start,
/// without media engines; pinned to their GPU's node, which never hurts here, and without a quota.
/// @throws InvalidInput when a field is out of range
[[nodiscard]] std::vector<std::vector<control::Configuration>> fixed_starts(const HostScenario& scenario);

/// One run.
struct HostRun {
    std::int64_t arrived = 0, completed = 0, missed = 0, shed = 0;
    std::int64_t decoded = 0;  ///< in LLM mode: of those completed (first token), whose last token came too
    /// Time in windows with a p99 above the target, of all protected tenants. The p99 is that of three windows, as the
    /// controller sees it, but requests that are lost, or wait for the end of a pause, count as above.
    double violation_s = 0;
    double excess_ms = 0;  ///< how far p99s of windows were above the target, on average over all windows
    double slice_s = 0;    ///< compute slices held by protected tenants, times seconds
    double miss_rate = 0;  ///< of arrived requests; those shed count as missed
    double miss_rate_completed = 0;                          ///< of completed ones
    double p50_ms = 0, p95_ms = 0, p99_ms = 0, p999_ms = 0;  ///< of completed ones
    double t2_bytes = 0, t3_work_s = 0;
    std::int32_t structural_actions = 0, throttles = 0, quota_changes = 0, rollbacks = 0;
    double structural_actions_per_hour = 0;
};
template <class F>
constexpr void visit_fields(std::type_identity<HostRun>, F&& field) {
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
/// @param audit the controller's audit log is appended here, one line per window; may be null
[[nodiscard]] HostRun run_host(const HostScenario& scenario, const control::ControllerFlags& flags,
                               std::uint64_t seed, std::string* audit = nullptr);

/// The options of the controller in such a run, as `control::replay_audit` wants them for its log.
/// @throws InvalidInput when a field is out of range
[[nodiscard]] control::ControllerOptions host_options(const HostScenario& scenario,
                                                      const control::ControllerFlags& flags);

/// Runs over several seeds, throughput against the static variant under the same seeds.
struct HostResult {
    std::vector<HostRun> runs{};
    std::vector<double> throughput{};         ///< completed requests of T1 / static's
    std::vector<double> system_throughput{};  ///< mean of the three tenants' work / static's
};
template <class F>
constexpr void visit_fields(std::type_identity<HostResult>, F&& field) {
    field("runs", &HostResult::runs);
    field("throughput", &HostResult::throughput);
    field("system_throughput", &HostResult::system_throughput);
}

/// @param variant a name of `control::variant_flags`
/// @throws InvalidInput when something is out of range
[[nodiscard]] HostResult simulate_host(const HostScenario& scenario, std::string_view variant,
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

}  // namespace GPUSCHED_NAMESPACE::sim

#ifdef GPUSCHED_HEADER_ONLY
#include <gpusched/sim/impl/host.ipp>
#include <gpusched/sim/impl/host_events.ipp>
#include <gpusched/sim/impl/host_simulation.ipp>
#endif
