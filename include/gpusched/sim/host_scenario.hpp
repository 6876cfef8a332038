// SPDX-License-Identifier: Apache-2.0
// HostScenario: the simulated host, its tenants and what they are asked for.
#pragma once

#include <gpusched/control/options.hpp>
#include <gpusched/core/enum_names.hpp>
#include <gpusched/core/fields.hpp>
#include <gpusched/sim/llm_trace.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace gpusched::sim {

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

/// What the hosts are made of, and where their tenants are at first.
struct HostLayout {
    std::int32_t hosts = 1;  ///< equal ones, each with its own tenants, requests and controller, 1 .. 64
    std::int32_t gpus_per_root =
        1;  ///< 1 .. 16; GPU k is below root k / gpus_per_root; at most 16 GPUs on a host
    std::int32_t trios =
        1;  ///< per host, 1 .. 16, at most one per root: trio k starts on the first GPU of root k
    std::string device = "A100-40GB";  ///< a part with MIG, see `control::mig_device`
    std::string start_profile = "2g";  ///< of protected tenants, a profile of the device
    std::int32_t start_slice = 0;      ///< its first memory slice
    double root_bytes_per_s = 22e9;    ///< what a root carries, above 0, at most 10^13
    /// Per root, 0 .. 0.95; the demand is as large a part of the capacity. The first half of the roots is on NUMA node 0.
    std::vector<double> background_weight{0.15, 0.35};
    /// Instances of others in the layouts: 2g at 4 and 1g at 6 of GPUs 0, 2, ..., 3g at 4 of GPUs 1, 3, ...
    bool neighbours = false;
    bool second_service =
        false;  ///< T4, protected like T1: same profile and slice, on the last GPU, without a client
    /// Where the protected tenants start instead, T1 of each trio, then T4; empty: `start_profile` and `start_slice`.
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

/// T2, who loads the PCIe and the disk of its root while it is on.
struct BandwidthTenant {
    double weight = 1.2;        ///< a request of T1 has weight 1; 0 .. 1000
    double bytes_per_s = 12e9;  ///< what it asks for, 0 .. 10^13
    double on_s = 600;          ///< mean of an Erlang-2 time, above 0, at most 10^7
    double off_s = 260;         ///< likewise
    double bytes_per_io_byte =
        4;  ///< PCIe traffic per byte of block I/O, and so under a limit of it; above 0, at most 1000
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
    double off_s = 300;      ///< likewise
    double beta = 0.6;       ///< SM_eff = SM / (1 + beta quota) while T3 computes; 0 .. 100
    bool quota_live = true;  ///< false: a quota holds from T3's next start on
};
template <class F>
constexpr void visit_fields(std::type_identity<ComputeTenant>, F&& field) {
    field("t3_on_s", &ComputeTenant::on_s, more_than(0.0, 1e7));
    field("t3_off_s", &ComputeTenant::off_s, more_than(0.0, 1e7));
    field("beta", &ComputeTenant::beta, within(0, 100));
    field("quota_live", &ComputeTenant::quota_live);
}

/// Requests of protected tenants: when they come, and what each of them takes.
struct HostRequests {
    std::vector<double> mmpp_rates{40, 80};  ///< arrivals per second in the two states, above 0, at most 10^5
    std::vector<double> state_s{20, 4};      ///< mean times in them, above 0, at most 10^7
    std::vector<RequestClass> classes{{0.67, 4e6, 6.0}, {0.20, 20e6, 10.8}, {0.13, 36e6, 13.3}};
    double noise_sigma = 0.035;     ///< of the logarithm of compute times, 0 .. 3
    double serial_fraction = 0.82;  ///< f of S = K (f + (1 - f) SM_2g / SM_eff), 0 .. 1
    std::int32_t servers = 4;       ///< of an instance: requests that it computes at a time, 1 .. 64
    double host_base_ms = 0.6;      ///< on the host, of every request; 0 .. 10,000
    double host_jitter_ms = 0.15;   ///< more on the host, mean of an exponential time; 0 .. 10,000
    double io_jitter_ms = 0.35;     ///< more where block I/O is felt, likewise; 0 .. 10,000
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
    double mean_s = 18;                             ///< 0 .. 3600; no pause is shorter than 1 s
    double sigma_s = 6;                             ///< standard deviation, 0 .. 600
    PauseMode mode = PauseMode::make_before_break;  ///< what happens to requests meanwhile
};
template <class F>
constexpr void visit_fields(std::type_identity<HostPauses>, F&& field) {
    field("pause_s", &HostPauses::mean_s, within(0, 3600));
    field("pause_sigma_s", &HostPauses::sigma_s, within(0, 600));
    field("pause_mode", &HostPauses::mode);
}

/// What goes wrong.
struct HostFaults {
    double counter_noise = 0;  ///< sigma of the logarithm of PCIe counters, -1 .. 5; below 0: there are none
    double failure_rate = 0;   ///< probability that a change fails and is undone, 0 .. 1
};
template <class F>
constexpr void visit_fields(std::type_identity<HostFaults>, F&& field) {
    field("counter_noise", &HostFaults::counter_noise, within(-1, 5));
    field("failure_rate", &HostFaults::failure_rate, within(0, 1));
}

/// LLM mode where there are any requests here: these, with tokens, instead of those of classes, one at a time in the prefill stage
/// (`HostRequests::servers` of them), then in the decode stage, all at once. What counts as latency is the time to first token.
struct HostLlm {
    std::vector<LlmRequest> requests{};  ///< times rise
    double requests_per_s =
        20;  ///< on average, above 0, at most 10^5: their times are stretched; each seed starts elsewhere
    double prefill_ms = 8;                 ///< of any request on a 2g instance by itself, 0 .. 100,000
    double prefill_ms_per_token = 0.02;    ///< more for each token of the prompt, 0 .. 100,000
    double prompt_bytes_per_token = 4096;  ///< over PCIe, 0 .. 10^9
    double decode_ms_per_token = 8;        ///< of a request by itself, 0 .. 100,000
    double decode_slows = 0.01;  ///< by how much each request in decode slows prefill, as a part, 0 .. 100
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

/// The options of the controller that a scenario sets; see `control::ControllerOptions`, whose ranges hold. Its guards have one level
/// each here: the lowest quota and the highest limit of the paper's Table 1.
struct HostController {
    double window_s = 2;  ///< 0.1 .. 60
    std::optional<double>
        threshold_ms{};  ///< p99 above which it acts, above 0, at most 10^6; absent = the target
    std::vector<std::int32_t> io_levels_mb_s{500};  ///< limits of block I/O, falling, each 100 .. 500
    std::vector<std::int32_t> quota_levels{50};     ///< per cent, falling, each 50 .. 100
    std::int32_t persistence = 3;  ///< windows above the threshold before anything is done, 1 .. 1000
    std::int32_t dwell = 256;      ///< between structural actions of a tenant, in windows, 1 .. 10,000,000
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

/// Hosts with PCIe roots, GPUs below them, and three tenants: T1 (protected), T2 (PCIe and block I/O on root 0),
/// T3 (MPS client in T1's instance); or more such trios, or another protected tenant on the last GPU. The defaults are
/// scenario `table3`, frozen: one host with two roots of one GPU.
///
/// In documents and in Python all fields stand side by side, under the names of the tables: `t2_weight` is `t2.weight`.
struct HostScenario {
    double duration_s = 3600;  ///< above 0, at most 10^6
    double tau_ms =
        15;  ///< target: a request of a protected tenant that takes longer is missed; above 0, at most 10^6
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

}  // namespace gpusched::sim
