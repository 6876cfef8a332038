// SPDX-License-Identifier: Apache-2.0
// Observation: the controller's input for one window.
#pragma once

#include <gpusched/control/estimators.hpp>
#include <gpusched/control/mig_layout.hpp>

#include <cstdint>
#include <limits>
#include <vector>

namespace gpusched::control {

inline constexpr double unknown_signal = std::numeric_limits<double>::quiet_NaN();

// Upper bounds of the signals. A larger value comes from a counter that wrapped around or is nonsense; it
// counts as unknown.
inline constexpr double most_latency_ms = 4.3e6;  ///< limit of `WindowQuantiles`
inline constexpr double most_capacities = 10;     ///< times the capacity of a PCIe root
inline constexpr double most_io_bytes_per_s = 1e12;
inline constexpr double most_irq_per_s = 1e8;
inline constexpr double most_per_s = 1e9;  ///< requests or replays of a PCIe root per second

/// Block I/O of a NUMA node that counts as 1 when signals are normalized.
inline constexpr double full_io_bytes_per_s = 2e9;

/// The signals of one tenant in one window. Unknown values are NaN.
struct TenantSignals {
    bool present = true;  ///< false once the tenant is gone
    double p50_ms = unknown_signal, p95_ms = unknown_signal;
    double p99_ms = unknown_signal;  ///< over the requests of the last three windows
    double p999_ms = unknown_signal;
    double ttft_p99_ms = unknown_signal;
    std::int64_t count = 0;   ///< requests completed in the window
    std::int64_t misses = 0;  ///< of these requests, above the target
    double offered_per_s = unknown_signal, completed_per_s = unknown_signal;
    double pcie_bytes_per_s = unknown_signal;
    double io_bytes_per_s = unknown_signal;
    double sm_active = unknown_signal, dram_active = unknown_signal;  ///< 0 to 1
    double memory_used_mib = unknown_signal;
    Attribution pcie_attribution = Attribution::unknown;
    Attribution io_attribution = Attribution::unknown;
};
template <class F>
constexpr void visit_fields(std::type_identity<TenantSignals>, F&& field) {
    field("present", &TenantSignals::present);
    field("p50_ms", &TenantSignals::p50_ms, NullIfUnknown{});
    field("p95_ms", &TenantSignals::p95_ms, NullIfUnknown{});
    field("p99_ms", &TenantSignals::p99_ms, NullIfUnknown{});
    field("p999_ms", &TenantSignals::p999_ms, NullIfUnknown{});
    field("ttft_p99_ms", &TenantSignals::ttft_p99_ms, NullIfUnknown{});
    field("count", &TenantSignals::count);
    field("misses", &TenantSignals::misses);
    field("offered_per_s", &TenantSignals::offered_per_s, NullIfUnknown{});
    field("completed_per_s", &TenantSignals::completed_per_s, NullIfUnknown{});
    field("pcie_bytes_per_s", &TenantSignals::pcie_bytes_per_s, NullIfUnknown{});
    field("io_bytes_per_s", &TenantSignals::io_bytes_per_s, NullIfUnknown{});
    field("sm_active", &TenantSignals::sm_active, NullIfUnknown{});
    field("dram_active", &TenantSignals::dram_active, NullIfUnknown{});
    field("memory_used_mib", &TenantSignals::memory_used_mib, NullIfUnknown{});
    field("pcie_attribution", &TenantSignals::pcie_attribution);
    field("io_attribution", &TenantSignals::io_attribution);
}

/// The signals of one PCIe root: its total traffic, and the replays since the last window.
struct RootSignals {
    double bytes_per_s = unknown_signal;
    double replays = unknown_signal;
};
template <class F>
constexpr void visit_fields(std::type_identity<RootSignals>, F&& field) {
    field("bytes_per_s", &RootSignals::bytes_per_s, NullIfUnknown{});
    field("replays", &RootSignals::replays, NullIfUnknown{});
}

/// The state of one GPU, as read from the hardware.
struct GpuSignals {
    bool lost = false;
    bool readable = true;  ///< whether `layout` was read
    MigLayout layout{};
};
template <class F>
constexpr void visit_fields(std::type_identity<GpuSignals>, F&& field) {
    field("lost", &GpuSignals::lost);
    field("readable", &GpuSignals::readable);
    field("layout", &GpuSignals::layout);
}

/// Results of the hardware interfaces.
enum class BackendStatus : std::uint8_t {
    ok,
    in_use,
    insufficient_resources,
    no_permission,
    reset_required,
    not_supported,
    not_found,
    gpu_is_lost,
    timeout,
    unknown,
    invalid_state
};

/// Returns whether a status blocks further actions until an operator resumes.
[[nodiscard]] constexpr bool freezes(BackendStatus s) noexcept {
    return s == BackendStatus::gpu_is_lost || s == BackendStatus::timeout || s == BackendStatus::unknown ||
           s == BackendStatus::invalid_state;
}

/// The outcome of a tenant's structural change.
struct Feedback {
    bool finished = false;
    BackendStatus status = BackendStatus::ok;
    bool restored = true;  ///< after a failure: the previous configuration is in place again
};
template <class F>
constexpr void visit_fields(std::type_identity<Feedback>, F&& field) {
    field("finished", &Feedback::finished);
    field("status", &Feedback::status);
    field("restored", &Feedback::restored);
}

/// The observation of one window. Vectors are indexed like those of `Host`.
struct Observation {
    std::int64_t window = 0;  ///< grows by one
    double time_s = 0;        ///< monotonic, at the window's end
    double wall_time_s = 0;   ///< for the audit log only
    bool enabled = true;
    bool operator_resume = false;  ///< an operator has checked a frozen device
    std::vector<TenantSignals> tenants{};
    std::vector<Feedback> feedback{};  ///< per tenant
    std::vector<RootSignals> roots{};
    /// Per root: traffic of network interfaces, which the PCIe counters of GPUs do not include. Empty:
    /// unknown.
    std::vector<double> nic_bytes_per_s{};
    std::vector<double> numa_io_bytes_per_s{};
    std::vector<double> irq_per_s{};  ///< per core
    std::vector<GpuSignals> gpus{};
    /// Per protected tenant: the reason why its limit, quota or cores of the last window could not be set, so
    /// that the earlier values still apply. `ok` if they are set. Empty: all are set.
    std::vector<BackendStatus> guards{};
};

}  // namespace gpusched::control
