// SPDX-License-Identifier: Apache-2.0
// The host under control: its GPUs, PCIe roots, cores and tenants, and the settings that the controller may
// change.
#pragma once

#include <gpusched/control/mig_layout.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace gpusched::control {

/// Maximum number of cores (hardware threads) of a host: the size of the kernel's `cpu_set_t`.
inline constexpr std::size_t most_cores = 1024;

/// A set of cores below `most_cores`.
struct CpuSet {
    std::array<std::uint64_t, most_cores / 64> words{};

    /// Returns the set of all cores below `most_cores`.
    [[nodiscard]] static constexpr CpuSet all() noexcept {
        CpuSet set;
        set.words.fill(~std::uint64_t{0});
        return set;
    }
    /// @param core below `most_cores`
    constexpr void add(std::size_t core) noexcept { words[core / 64] |= std::uint64_t{1} << core % 64; }
    [[nodiscard]] constexpr bool contains(std::size_t core) const noexcept {
        return words[core / 64] >> core % 64 & 1;
    }
    /// Number of words up to the last one with a core.
    [[nodiscard]] constexpr std::size_t words_in_use() const noexcept {
        auto count = words.size();
        while (count > 0 && words[count - 1] == 0) --count;
        return count;
    }
    friend constexpr bool operator==(const CpuSet&, const CpuSet&) = default;
};

/// A PCIe root complex.
struct HostRoot {
    double capacity_bytes_per_s = 22e9;  ///< above 0
    std::int32_t bridge = 0;             ///< roots behind one host bridge share this number
    std::int32_t numa = 0;
};
template <class F>
constexpr void visit_fields(std::type_identity<HostRoot>, F&& field) {
    field("capacity_bytes_per_s", &HostRoot::capacity_bytes_per_s, more_than(0.0, 1e15));
    field("bridge", &HostRoot::bridge);
    field("numa", &HostRoot::numa);
}

/// A GPU in MIG mode.
struct HostGpu {
    std::string device = "A100-40GB";  ///< a name of `mig_device`
    std::int32_t root = 0;
    std::int32_t numa = 0;
};
template <class F>
constexpr void visit_fields(std::type_identity<HostGpu>, F&& field) {
    field("device", &HostGpu::device);
    field("root", &HostGpu::root);
    field("numa", &HostGpu::numa);
}

/// The settings of a tenant that the controller may change: its instance, the quota of the MPS client in it,
/// and its cores. The leased limit of block I/O is not included.
struct Configuration {
    std::int32_t gpu = 0;
    MigInstance instance{};
    std::int32_t quota_percent = 100;  ///< active threads of the MPS client in the same instance
    CpuSet cpus{};                     ///< empty: not pinned
    friend constexpr bool operator==(const Configuration&, const Configuration&) = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<Configuration>, F&& field) {
    field("gpu", &Configuration::gpu);
    field("instance", &Configuration::instance);
    field("quota_percent", &Configuration::quota_percent, within(50, 100));
    field("cpus", &Configuration::cpus);
}

/// A tenant of the host.
struct HostTenant {
    std::string name{};
    /// The controller protects this tenant's tail latency. The tenant owns the instance of `start`. Other
    /// tenants are never moved.
    bool is_protected = false;
    double tau_ms = 15;           ///< protected: threshold of its p99, above 0
    double tau_p999_ms = 0;       ///< protected: threshold of its p999; 0: only the p99 counts
    Configuration start{};        ///< protected: the initial configuration
    std::int32_t gpu = -1;        ///< others: GPU on the root of their PCIe traffic; -1: none
    std::int32_t numa = -1;       ///< others: NUMA node of their block I/O; -1: unknown
    std::int32_t client_of = -1;  ///< others: MPS client in the instance of this protected tenant
    bool follows = true;  ///< MPS client that agreed to move with the instance; otherwise the instance stays
};
template <class F>
constexpr void visit_fields(std::type_identity<HostTenant>, F&& field) {
    field("name", &HostTenant::name);
    field("protected", &HostTenant::is_protected);
    field("tau_ms", &HostTenant::tau_ms);
    field("tau_p999_ms", &HostTenant::tau_p999_ms);
    field("start", &HostTenant::start);
    field("gpu", &HostTenant::gpu);
    field("numa", &HostTenant::numa);
    field("client_of", &HostTenant::client_of);
    field("follows", &HostTenant::follows);
}

/// The host.
struct Host {
    std::vector<HostRoot> roots{};
    std::vector<HostGpu> gpus{};            ///< at most 16
    std::vector<std::int32_t> core_numa{};  ///< NUMA node of each core, at most `most_cores`
    std::int32_t numa_nodes = 1;
    std::vector<HostTenant> tenants{};
};
template <class F>
constexpr void visit_fields(std::type_identity<Host>, F&& field) {
    field("roots", &Host::roots);
    field("gpus", &Host::gpus);
    field("core_numa", &Host::core_numa);
    field("numa_nodes", &Host::numa_nodes, within(1, 64));
    field("tenants", &Host::tenants);
}

}  // namespace gpusched::control
