// simulate_host: a latency-sensitive tenant between a bandwidth hog and a compute hog, under the controller.
#pragma once

#include <gpusched/config.hpp>
#include <gpusched/control/options.hpp>
#include <gpusched/core/enum_names.hpp>
#include <gpusched/core/fields.hpp>
#include <gpusched/core/quantity.hpp>
#include <gpusched/sim/llm_trace.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace GPUSCHED_NAMESPACE::sim {

/// A kind of request: how often, how much it transfers, and how long it computes on a 2g instance by itself.
struct RequestClass {
    double share = 1;
    double bytes = 0;
    double compute_ms = 0;
};
template <class F>
constexpr void visit_fields(std::type_identity<RequestClass>, F&& field) {
    field("share", &RequestClass::share, within(0, 1));
    field("bytes", &RequestClass::bytes, within(0.0, double(largest_quantity)));
    field("compute_ms", &RequestClass::compute_ms, within(0.0, 1e6));
}

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

/// Hosts with PCIe roots, GPUs below them, and three tenants: T1 (protected), T2 (PCIe and block I/O on root 0),
/// T3 (MPS client in T1's instance); or more such trios, or another protected tenant on the last GPU. The defaults are
/// scenario `table3`, frozen: one host with two roots of one GPU.
struct HostScenario {
    std::int32_t hosts = 1;          ///< equal ones, each with its own tenants, requests and controller
    std::int32_t gpus_per_root = 1;  ///< GPU k is below root k / gpus_per_root; at most 16 GPUs on a host
    std::int32_t trios = 1;  ///< per host, at most one per root: trio k starts on the first GPU of root k
    std::string device = "A100-40GB";
    std::string start_profile = "2g";
    std::int32_t start_slice = 0;
    double duration_s = 3600;
    double window_s = 2;
    double tau_ms = 15;  ///< target: a request of a protected tenant that takes longer is missed
    std::optional<double> threshold_ms{};  ///< p99 above which the controller acts; absent = the target

    double root_bytes_per_s = 22e9;
    /// Per root; the demand is as large a part of the capacity. The first half of the roots is on NUMA node 0.
    std::vector<double> background_weight{0.15, 0.35};

    double t2_weight = 1.2;  ///< a request of T1 has weight 1
    double t2_bytes_per_s = 12e9;
    double t2_on_s = 600, t2_off_s = 260;  ///< means of Erlang-2 times
    double t2_bytes_per_io_byte = 4;       ///< PCIe traffic per byte of block I/O, and so under a limit of it

    double t3_on_s = 360, t3_off_s = 300;  ///< means of Erlang-2 times
    double beta = 0.6;                     ///< SM_eff = SM / (1 + beta quota) while T3 computes
    bool quota_live = true;                ///< false: a quota holds from T3's next start on

    std::vector<double> mmpp_rates{40, 80};  ///< arrivals per second in the two states
    std::vector<double> state_s{20, 4};      ///< mean times in them
    std::vector<RequestClass> classes{{0.67, 4e6, 6.0}, {0.20, 20e6, 10.8}, {0.13, 36e6, 13.3}};
    double noise_sigma = 0.035;     ///< of the logarithm of compute times
    double serial_fraction = 0.82;  ///< f of S = K (f + (1 - f) SM_2g / SM_eff)
    std::int32_t servers = 4;
    double host_base_ms = 0.6, host_jitter_ms = 0.15, io_jitter_ms = 0.35;

    double pause_s = 18, pause_sigma_s = 6;
    PauseMode pause_mode = PauseMode::make_before_break;

    double counter_noise = 0;  ///< sigma of the logarithm of PCIe counters; below 0: there are none
    double failure_rate = 0;   ///< probability that a change fails and is undone
    /// Instances of others in the layouts: 2g at 4 and 1g at 6 of GPUs 0, 2, ..., 3g at 4 of GPUs 1, 3, ...
    bool neighbours = false;
    bool second_service =
        false;  ///< T4, protected like T1: same profile and slice, on the last GPU, without a client
    /// Where the protected tenants start instead, T1 of each trio, then T4; empty: `start_profile` and `start_slice`.
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
template <class F>
constexpr void visit_fields(std::type_identity<HostScenario>, F&& field) {
    field("hosts", &HostScenario::hosts, within(1, 64));
    field("gpus_per_root", &HostScenario::gpus_per_root, within(1, 16));
    field("trios", &HostScenario::trios, within(1, 16));
    field("device", &HostScenario::device);
    field("start_profile", &HostScenario::start_profile);
    field("start_slice", &HostScenario::start_slice);
    field("duration_s", &HostScenario::duration_s, more_than(0.0, 1e6));
    field("window_s", &HostScenario::window_s, within(0.1, 60.0));
    field("tau_ms", &HostScenario::tau_ms, more_than(0.0, 1e6));
    field("threshold_ms", &HostScenario::threshold_ms, more_than(0.0, 1e6));
    field("root_bytes_per_s", &HostScenario::root_bytes_per_s, more_than(0.0, 1e13));
    field("background_weight", &HostScenario::background_weight, within(0.0, 0.95));
    field("t2_weight", &HostScenario::t2_weight, within(0, 1000));
    field("t2_bytes_per_s", &HostScenario::t2_bytes_per_s, within(0.0, 1e13));
    field("t2_on_s", &HostScenario::t2_on_s, more_than(0.0, 1e7));
    field("t2_off_s", &HostScenario::t2_off_s, more_than(0.0, 1e7));
    field("t2_bytes_per_io_byte", &HostScenario::t2_bytes_per_io_byte, more_than(0.0, 1000.0));
    field("t3_on_s", &HostScenario::t3_on_s, more_than(0.0, 1e7));
    field("t3_off_s", &HostScenario::t3_off_s, more_than(0.0, 1e7));
    field("beta", &HostScenario::beta, within(0, 100));
    field("quota_live", &HostScenario::quota_live);
    field("mmpp_rates", &HostScenario::mmpp_rates, more_than(0.0, 1e5));
    field("state_s", &HostScenario::state_s, more_than(0.0, 1e7));
    field("classes", &HostScenario::classes);
    field("noise_sigma", &HostScenario::noise_sigma, within(0, 3));
    field("serial_fraction", &HostScenario::serial_fraction, within(0, 1));
    field("servers", &HostScenario::servers, within(1, 64));
    field("host_base_ms", &HostScenario::host_base_ms, within(0, 10'000));
    field("host_jitter_ms", &HostScenario::host_jitter_ms, within(0, 10'000));
    field("io_jitter_ms", &HostScenario::io_jitter_ms, within(0, 10'000));
    field("pause_s", &HostScenario::pause_s, within(0, 3600));
    field("pause_sigma_s", &HostScenario::pause_sigma_s, within(0, 600));
    field("pause_mode", &HostScenario::pause_mode);
    field("counter_noise", &HostScenario::counter_noise, within(-1, 5));
    field("failure_rate", &HostScenario::failure_rate, within(0, 1));
    field("neighbours", &HostScenario::neighbours);
    field("second_service", &HostScenario::second_service);
    field("llm_requests", &HostScenario::llm_requests);
    field("llm_requests_per_s", &HostScenario::llm_requests_per_s, more_than(0.0, 1e5));
    field("prefill_ms", &HostScenario::prefill_ms, within(0, 100'000));
    field("prefill_ms_per_token", &HostScenario::prefill_ms_per_token, within(0, 100'000));
    field("prompt_bytes_per_token", &HostScenario::prompt_bytes_per_token, within(0.0, 1e9));
    field("decode_ms_per_token", &HostScenario::decode_ms_per_token, within(0, 100'000));
    field("decode_slows", &HostScenario::decode_slows, within(0, 100));
    field("io_levels_mb_s", &HostScenario::io_levels_mb_s);
    field("quota_levels", &HostScenario::quota_levels);
    field("persistence", &HostScenario::persistence);
    field("dwell", &HostScenario::dwell);
}

/// The scenarios that have a name: `table3`, harder ones, and `llm`.
enum class HostScenarioName : std::uint8_t {
    table3,  ///< the defaults, fitted to the paper's Table 3
    noisy_counters,
    no_counters,
    quota_at_restart,
    neighbours,
    faults,
    two_services,
    mixed,  ///< all that is harder at once, on another part with other loads; frozen before the variant `ours` was written
    llm,    ///< on a generated trace; a recorded one goes to `llm_requests`
    two_hosts  ///< the paper's testbed: two hosts of eight A100-80GB, two below each of four roots; tenants as in `table3`
};
constexpr auto enum_names(HostScenarioName) {
    return name_table<HostScenarioName>({
        {HostScenarioName::table3, "table3"},
        {HostScenarioName::noisy_counters, "noisy_counters"},
        {HostScenarioName::no_counters, "no_counters"},
        {HostScenarioName::quota_at_restart, "quota_at_restart"},
        {HostScenarioName::neighbours, "neighbours"},
        {HostScenarioName::faults, "faults"},
        {HostScenarioName::two_services, "two_services"},
        {HostScenarioName::mixed, "mixed"},
        {HostScenarioName::llm, "llm"},
        {HostScenarioName::two_hosts, "two_hosts"},
    });
}

/// The scenario of that name; every field may be changed.
[[nodiscard]] HostScenario host_scenario(HostScenarioName name);

/// @throws InvalidInput with every field out of range
void validate(const HostScenario& scenario);

/// Every way to place the protected tenants for good, as `starts` of the scenario: all that differs to them (GPU and
/// profile) once, where there is room beside the neighbours and beside each other, with no less memory than at their start,
/// without media engines; pinned to their GPU's node, which never hurts here, and without a quota.
/// @throws InvalidInput when a field is out of range
[[nodiscard]] std::vector<std::vector<control::Configuration>> fixed_starts(const HostScenario& scenario);

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

}  // namespace GPUSCHED_NAMESPACE::sim

#ifdef GPUSCHED_HEADER_ONLY
#include <gpusched/sim/impl/host_events.ipp>
#include <gpusched/sim/impl/host_simulation.ipp>
#include <gpusched/sim/impl/simulate_host.ipp>
#endif
