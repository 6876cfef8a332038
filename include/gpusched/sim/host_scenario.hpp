// SPDX-License-Identifier: Apache-2.0
// HostScenario: the simulated host, its tenants and their workload.
#pragma once

#include <gpusched/control/options.hpp>
#include <gpusched/core/enum_names.hpp>
#include <gpusched/core/fields.hpp>
#include <gpusched/serving/llm_trace.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace gpusched::sim {

/// A kind of request: its share of all requests, its transfer in bytes, and its compute time alone on a 2g
/// instance.
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

/// Treatment of requests during a structural change.
enum class PauseMode : std::uint8_t {
    shed,              ///< requests are lost
    queue,             ///< requests wait
    make_before_break  ///< no pause if the new instance fits next to the old one; otherwise requests are lost
};
constexpr auto enum_names(PauseMode) {
    return name_table<PauseMode>({
        {PauseMode::shed, "shed"},
        {PauseMode::queue, "queue"},
        {PauseMode::make_before_break, "mbb"},
    });
}

/// The hosts' hardware and the initial places of their tenants.
struct HostLayout {
    std::int32_t hosts = 1;  ///< equal hosts, each with its own tenants, requests and controller, 1 to 64
    /// GPUs per PCIe root, 1 to 16; GPU k is below root k / gpus_per_root. A host has at most 16 GPUs.
    std::int32_t gpus_per_root = 1;
    /// Trios per host, 1 to 16, at most one per root. Trio k starts on the first GPU of root k.
    std::int32_t trios = 1;
    std::string device = "A100-40GB";  ///< a part with MIG, see `control::mig_device`
    std::string start_profile = "2g";  ///< of protected tenants, a profile of the device
    std::int32_t start_slice = 0;      ///< first memory slice of start_profile
    double root_bytes_per_s = 22e9;    ///< capacity of a root, above 0, at most 10^13
    /// Weight of the background traffic per root, 0 to 0.95. Its demand is the same part of the capacity. The
    /// first half of the roots is on NUMA node 0.
    std::vector<double> background_weight{0.15, 0.35};
    /// Adds instances of other users: 2g at 4 and 1g at 6 on GPUs 0, 2, ..., 3g at 4 on GPUs 1, 3, ...
    bool neighbours = false;
    /// Adds T4, a tenant protected like T1, with the same profile and slice, on the last GPU, without a
    /// client.
    bool second_service = false;
    /// Explicit initial places of the protected tenants: T1 of each trio, then T4. Empty: `start_profile` and
    /// `start_slice`.
    std::vector<control::Configuration> starts{};
};
template <class F>
constexpr void visit_fields(std::type_identity<HostLayout>, F&& field) {
    field("hosts", &HostLayout::hosts, within(1, 64));
    field("gpus_per_root", &HostLayout::gpus_per_root, within(1, 16));
    field("trios", &HostLayout::trios, within(1, 16));
    field("device", &HostLayout::device);
    field("start_profile", &HostLayout::start_profile);
    field("start_slice", &HostLayout::start_slice);
    field("root_bytes_per_s", &HostLayout::root_bytes_per_s, more_than(0.0, 1e13));
    field("background_weight", &HostLayout::background_weight, within(0.0, 0.95));
    field("neighbours", &HostLayout::neighbours);
    field("second_service", &HostLayout::second_service);
}

/// T2, which loads the PCIe and the disk of its root while it is on.
struct BandwidthTenant {
    double weight = 1.2;        ///< relative to a request of T1 (1), 0 to 1000
    double bytes_per_s = 12e9;  ///< demand, 0 to 10^13
    double on_s = 600;          ///< mean of an Erlang-2 time, above 0, at most 10^7
    double off_s = 260;         ///< as on_s
    /// PCIe traffic per byte of block I/O, so a limit on block I/O also limits PCIe; above 0, at most 1000.
    double bytes_per_io_byte = 4;
};
template <class F>
constexpr void visit_fields(std::type_identity<BandwidthTenant>, F&& field) {
    field("t2_weight", &BandwidthTenant::weight, within(0, 1000));
    field("t2_bytes_per_s", &BandwidthTenant::bytes_per_s, within(0.0, 1e13));
    field("t2_on_s", &BandwidthTenant::on_s, more_than(0.0, 1e7));
    field("t2_off_s", &BandwidthTenant::off_s, more_than(0.0, 1e7));
    field("t2_bytes_per_io_byte", &BandwidthTenant::bytes_per_io_byte, more_than(0.0, 1000.0));
}

/// T3, an MPS client in T1's instance that computes while it is on.
struct ComputeTenant {
    double on_s = 360;       ///< mean of an Erlang-2 time, above 0, at most 10^7
    double off_s = 300;      ///< as on_s
    double beta = 0.6;       ///< SM_eff = SM / (1 + beta quota) while T3 computes; 0 to 100
    bool quota_live = true;  ///< false: a new quota takes effect at T3's next start
};
template <class F>
constexpr void visit_fields(std::type_identity<ComputeTenant>, F&& field) {
    field("t3_on_s", &ComputeTenant::on_s, more_than(0.0, 1e7));
    field("t3_off_s", &ComputeTenant::off_s, more_than(0.0, 1e7));
    field("beta", &ComputeTenant::beta, within(0, 100));
    field("quota_live", &ComputeTenant::quota_live);
}

/// Requests of protected tenants: their arrivals and their service demands.
struct HostRequests {
    std::vector<double> mmpp_rates{40, 80};  ///< arrivals per second in the two states, above 0, at most 10^5
    std::vector<double> state_s{20, 4};      ///< mean times in the two states, above 0, at most 10^7
    std::vector<RequestClass> classes{{0.67, 4e6, 6.0}, {0.20, 20e6, 10.8}, {0.13, 36e6, 13.3}};
    double noise_sigma = 0.035;     ///< sigma of the logarithm of compute times, 0 to 3
    double serial_fraction = 0.82;  ///< f in S = K (f + (1 - f) SM_2g / SM_eff), 0 to 1
    std::int32_t servers = 4;       ///< requests that an instance computes at a time, 1 to 64
    double host_base_ms = 0.6;      ///< time on the host of every request, 0 to 10,000
    double host_jitter_ms = 0.15;   ///< mean of an additional exponential time on the host, 0 to 10,000
    double io_jitter_ms = 0.35;     ///< mean of a further such time if block I/O disturbs the tenant, 0 to
                                    ///< 10,000
};
template <class F>
constexpr void visit_fields(std::type_identity<HostRequests>, F&& field) {
    field("mmpp_rates", &HostRequests::mmpp_rates, more_than(0.0, 1e5));
    field("state_s", &HostRequests::state_s, more_than(0.0, 1e7));
    field("classes", &HostRequests::classes);
    field("noise_sigma", &HostRequests::noise_sigma, within(0, 3));
    field("serial_fraction", &HostRequests::serial_fraction, within(0, 1));
    field("servers", &HostRequests::servers, within(1, 64));
    field("host_base_ms", &HostRequests::host_base_ms, within(0, 10'000));
    field("host_jitter_ms", &HostRequests::host_jitter_ms, within(0, 10'000));
    field("io_jitter_ms", &HostRequests::io_jitter_ms, within(0, 10'000));
}

/// The pause of a structural change.
struct HostPauses {
    double mean_s = 18;                             ///< 0 to 3600; no pause is shorter than 1 s
    double sigma_s = 6;                             ///< standard deviation, 0 to 600
    PauseMode mode = PauseMode::make_before_break;  ///< treatment of requests during the pause
};
template <class F>
constexpr void visit_fields(std::type_identity<HostPauses>, F&& field) {
    field("pause_s", &HostPauses::mean_s, within(0, 3600));
    field("pause_sigma_s", &HostPauses::sigma_s, within(0, 600));
    field("pause_mode", &HostPauses::mode);
}

/// Noise and failures.
struct HostFaults {
    double counter_noise = 0;  ///< sigma of the logarithm of PCIe counters, -1 to 5; below 0: no counters
    double failure_rate = 0;   ///< probability that a change fails and is undone, 0 to 1
};
template <class F>
constexpr void visit_fields(std::type_identity<HostFaults>, F&& field) {
    field("counter_noise", &HostFaults::counter_noise, within(-1, 5));
    field("failure_rate", &HostFaults::failure_rate, within(0, 1));
}

/// LLM mode, on if `requests` is not empty. These requests, with tokens, replace those of classes. A request
/// is first in the prefill stage, which computes `HostRequests::servers` requests at a time, then in the
/// decode stage, which runs all its requests at once. Latency is the time to first token.
struct HostLlm {
    std::vector<serving::LlmRequest> requests{};  ///< with rising times
    /// Mean rate, above 0, at most 10^5. The trace's times are stretched to it; each seed starts at another
    /// point.
    double requests_per_s = 20;
    double prefill_ms = 8;                 ///< of any request alone on a 2g instance, 0 to 100,000
    double prefill_ms_per_token = 0.02;    ///< additional time per token of the prompt, 0 to 100,000
    double prompt_bytes_per_token = 4096;  ///< over PCIe, 0 to 10^9
    double decode_ms_per_token = 8;        ///< of a request alone, 0 to 100,000
    double decode_slows = 0.01;            ///< relative slowdown of prefill per request in decode, 0 to 100
};
template <class F>
constexpr void visit_fields(std::type_identity<HostLlm>, F&& field) {
    field("llm_requests", &HostLlm::requests);
    field("llm_requests_per_s", &HostLlm::requests_per_s, more_than(0.0, 1e5));
    field("prefill_ms", &HostLlm::prefill_ms, within(0, 100'000));
    field("prefill_ms_per_token", &HostLlm::prefill_ms_per_token, within(0, 100'000));
    field("prompt_bytes_per_token", &HostLlm::prompt_bytes_per_token, within(0.0, 1e9));
    field("decode_ms_per_token", &HostLlm::decode_ms_per_token, within(0, 100'000));
    field("decode_slows", &HostLlm::decode_slows, within(0, 100));
}

/// The controller's options that a scenario sets; see `control::ControllerOptions` for their ranges. By
/// default each guard has one level: the lowest quota and the highest limit of the paper's Table 1.
struct HostController {
    double window_s = 2;  ///< 0.1 to 60
    /// Latency p99 above which the controller acts, above 0, at most 10^6; absent = `tau_ms`.
    std::optional<double> threshold_ms{};
    std::vector<std::int32_t> io_levels_mb_s{500};  ///< limits of block I/O, falling, each 100 to 500
    std::vector<std::int32_t> quota_levels{50};     ///< per cent, falling, each 50 to 100
    std::int32_t persistence = 3;  ///< windows above the threshold before the first action, 1 to 1000
    std::int32_t dwell = 256;      ///< windows between structural actions of a tenant, 1 to 10,000,000
};
template <class F>
constexpr void visit_fields(std::type_identity<HostController>, F&& field) {
    field("window_s", &HostController::window_s, within(0.1, 60.0));
    field("threshold_ms", &HostController::threshold_ms, more_than(0.0, 1e6));
    field("io_levels_mb_s", &HostController::io_levels_mb_s);
    field("quota_levels", &HostController::quota_levels);
    field("persistence", &HostController::persistence);
    field("dwell", &HostController::dwell);
}

/// A scenario of the host simulator.
///
/// Hosts have PCIe roots with GPUs below them, and three tenants: T1 (protected), T2 (PCIe and block I/O on
/// root 0) and T3 (an MPS client in T1's instance). There may be several such trios, or another protected
/// tenant on the last GPU. The defaults are scenario `table3` (frozen): one host with two roots of one GPU.
///
/// In documents and in Python all fields are at one level, under the names of the tables: `t2_weight` is
/// `t2.weight`.
struct HostScenario {
    double duration_s = 3600;  ///< above 0, at most 10^6
    /// Target latency, above 0, at most 10^6; a slower request of a protected tenant counts as missed.
    double tau_ms = 15;
    HostLayout layout{};
    BandwidthTenant t2{};
    ComputeTenant t3{};
    HostRequests requests{};
    HostPauses pauses{};
    HostFaults faults{};
    HostLlm llm{};
    HostController controller{};
};
template <class F>
constexpr void visit_fields(std::type_identity<HostScenario>, F&& field) {
    field("duration_s", &HostScenario::duration_s, more_than(0.0, 1e6));
    field("tau_ms", &HostScenario::tau_ms, more_than(0.0, 1e6));
    field("layout", &HostScenario::layout, Inlined{});
    field("t2", &HostScenario::t2, Inlined{});
    field("t3", &HostScenario::t3, Inlined{});
    field("requests", &HostScenario::requests, Inlined{});
    field("pauses", &HostScenario::pauses, Inlined{});
    field("faults", &HostScenario::faults, Inlined{});
    field("llm", &HostScenario::llm, Inlined{});
    field("controller", &HostScenario::controller, Inlined{});
}

/// The named scenarios: `table3`, harder ones, and `llm`.
enum class HostScenarioName : std::uint8_t {
    table3,  ///< the defaults, fitted to the paper's Table 3
    noisy_counters,
    no_counters,
    quota_at_restart,
    neighbours,
    faults,
    two_services,
    /// All difficulties at once, on another part with other loads; frozen before the variant `ours` was
    /// written.
    mixed,
    llm,  ///< on a generated trace; pass a recorded one as `llm_requests`
    /// The paper's testbed: two hosts of eight A100-80GB, two below each of four roots; tenants as in
    /// `table3`.
    two_hosts
};

/// Returns the scenario of that name; every field may be changed.
[[nodiscard]] HostScenario host_scenario(HostScenarioName name);

/// @throws InvalidInput with every field out of range
void validate(const HostScenario& scenario);

/// Returns every way to place the protected tenants permanently, as `starts` of the scenario. Ways that are
/// equal for the tenants (same GPU and profile) are listed once.
///
/// Each way fits next to the neighbours, gives every tenant at least its initial memory, and uses no media
/// engines. Tenants are pinned to their GPU's node, which never hurts in this model, and have no quota.
/// @throws InvalidInput when a field is out of range
[[nodiscard]] std::vector<std::vector<control::Configuration>> fixed_starts(const HostScenario& scenario);

}  // namespace gpusched::sim
