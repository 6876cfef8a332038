// SPDX-License-Identifier: Apache-2.0
// The `SignalSource` of a real host: latencies, the kernel's counters, NVML's, and the GPU instances.
#pragma once

#include <gpusched/host/cgroup.hpp>
#include <gpusched/host/latency_source.hpp>
#include <gpusched/host/nvml.hpp>
#include <gpusched/host/proc_signals.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace gpusched::host {

/// Where the signals of a tenant come from.
struct TenantSource {
    std::unique_ptr<LatencySource> latency{};
    std::string cgroup{};              ///< folder; empty: its block I/O is not known
    std::vector<std::string> disks{};  ///< major:minor that count; empty: all
};

/// Where the signals of a host come from, beside its files and instances.
struct SignalSources {
    std::vector<TenantSource> tenants{};  ///< as those of the host
    std::string proc = "/proc";
    std::vector<std::vector<std::string>> numa_disks{};  ///< names of the whole disks of each NUMA node
    std::vector<std::vector<std::string>>
        root_nics{};                ///< names of the network interfaces of each PCIe root; empty: not known
    Nvml* nvml = nullptr;           ///< null: PCIe traffic is not known
    std::vector<int> handles{};     ///< of `Nvml::find`, by the host's GPU
    std::int32_t layout_every = 5;  ///< windows between looks at the instances, 1 to 1000
    double window_s = 2;            ///< seconds that the first window is taken to have lasted
};

/// Reads one window from files, latencies and hardware. Whatever cannot be read is unknown; nothing throws.
///
/// A tenant without a latency source is there as long as its control group is. PCIe counters are those of whole GPUs:
/// a tenant's traffic is inferred, as at least its block I/O, once that moves with the traffic of its GPU's root.
/// Counters per core or disk are rates between the windows.
class HostSignals {
  public:
    HostSignals(const Host& host, Files& files, MigBackend& mig, SignalSources from);

    /// @param now_s monotonic, at the end of the window
    void read(Observation& seen, double now_s);
    /// Whether the last window looked at the instances.
    [[nodiscard]] bool looked() const noexcept { return since_look_ == 0; }
    /// The instances have been changed: the next window looks at them.
    void look_again() noexcept { since_look_ = -1; }
    /// Lines that the latency sources could not make sense of, since the last call.
    [[nodiscard]] std::int64_t take_ignored() noexcept { return std::exchange(ignored_, 0); }

  private:
    void tenant(Observation& seen, std::size_t i);
    void roots(Observation& seen);
    void disks(Observation& seen);
    void networks(Observation& seen);
    void interrupts(Observation& seen);
    void instances(Observation& seen);

    const Host& host_;
    Files& files_;
    MigBackend& mig_;
    SignalSources from_;
    std::int32_t since_look_ = -1;
    double now_s_ = 0, last_s_ = 0, passed_s_ = 1;
    bool started_ = false;
    std::vector<CounterRate> io_;
    std::vector<ActivityCorrelation> links_;
    std::vector<CounterRate> pcie_, replays_, cores_, disks_, nics_;
    std::vector<GpuSignals> gpus_;
    std::int64_t ignored_ = 0;
};

}  // namespace gpusched::host
