// SPDX-License-Identifier: Apache-2.0
// What the kernel counts: interrupts per core, bytes per disk and network interface, traffic and replays of PCIe devices.
#pragma once

#include <gpusched/host/names.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gpusched::host {

/// Interrupts of devices by core, from /proc/interrupts: the rows with a number; those of the timers and of other
/// cores (LOC, RES, ...) say how busy a core is, not who disturbs it. Cores that are switched off have none.
/// @return indexed by core; as long as the last core named
/// @throws BackendError for text that is no such table
[[nodiscard]] std::vector<std::uint64_t> parse_interrupts(std::string_view text);

/// A row of /proc/diskstats: a disk or a partition.
struct DiskStats {
    std::string name{};    ///< such as `nvme0n1`
    std::string device{};  ///< such as `259:0`
    std::uint64_t bytes_read = 0, bytes_written = 0;
    friend bool operator==(const DiskStats&, const DiskStats&) = default;
};

/// @throws BackendError for a row that cannot be read
[[nodiscard]] std::vector<DiskStats> parse_diskstats(std::string_view text);

/// A row of /proc/net/dev: a network interface.
struct NetStats {
    std::string name{};       ///< such as `eth0`
    std::uint64_t bytes = 0;  ///< received and sent
    friend bool operator==(const NetStats&, const NetStats&) = default;
};

/// Network interfaces of /proc/net/dev. Traffic that goes past the kernel (RDMA) is not counted there.
/// @throws BackendError for a row that cannot be read
[[nodiscard]] std::vector<NetStats> parse_net_dev(std::string_view text);

/// The sum of the errors of PCIe's link (`aer_dev_correctable` of /sys): the row TOTAL_ERR_COR.
/// @throws BackendError for text without it
[[nodiscard]] std::uint64_t parse_aer_correctable(std::string_view text);

/// NUMA node of a device as /sys has it; -1 where it is not known, as on virtual machines.
[[nodiscard]] std::int32_t parse_numa_node(std::string_view text) noexcept;

/// Bytes per second of a PCIe link in one direction, from `current_link_speed` ("16.0 GT/s PCIe") and
/// `current_link_width` ("16"), with the encoding taken off; NaN where they cannot be read.
[[nodiscard]] double pcie_bytes_per_s(std::string_view speed, std::string_view width) noexcept;

/// The rate of a counter. The first value gives none, nor does one below the last (a counter that was reset or has
/// wrapped), nor one at the same time.
struct CounterRate {
    double value = 0, time_s = 0;
    bool known = false;

    /// @return per second, or NaN
    double update(double now, double now_s) noexcept {
        const double passed = now_s - time_s, grown = now - value;
        const bool usable = known && is_usable(now) && passed > 0 && grown >= 0;
        known = is_usable(now);
        value = now;
        time_s = now_s;
        return usable ? grown / passed : unknown_signal;
    }
    /// A value is missing; the next one starts anew.
    void lose() noexcept { known = false; }
};

}  // namespace gpusched::host
