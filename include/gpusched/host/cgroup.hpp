// SPDX-License-Identifier: Apache-2.0
// Control groups (version 2): limits of block I/O, cores and weight of a tenant.
#pragma once

#include <gpusched/core/errors.hpp>
#include <gpusched/host/files.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpusched::host {

/// Limits of one disk, a line of io.max; `no_io_limit` where there is none.
inline constexpr std::uint64_t no_io_limit = ~std::uint64_t{0};
struct IoMax {
    std::string device{};  ///< major:minor of a whole disk
    std::uint64_t read_bytes_per_s = no_io_limit, write_bytes_per_s = no_io_limit;
    std::uint64_t reads_per_s = no_io_limit, writes_per_s = no_io_limit;
    friend bool operator==(const IoMax&, const IoMax&) = default;
};

/// A disk's line of io.max; no limits where it has none.
/// @throws BackendError for a line that cannot be read
[[nodiscard]] IoMax parse_io_max(std::string_view text, std::string_view device);

/// The line to write, all four limits named: what is left out would stay.
[[nodiscard]] std::string io_max_text(const IoMax& limits);

/// Bytes read and written, over all disks or those listed, of io.stat. Nothing is listed before the first I/O.
/// @throws BackendError for a line that cannot be read
[[nodiscard]] std::uint64_t parse_io_stat(std::string_view text, const std::vector<std::string>& devices);

/// Thread ids, one per line, as in cgroup.threads. @return false for a line that is none
[[nodiscard]] bool parse_threads(std::string_view text, std::vector<std::int64_t>& threads);

/// Whether two lists of cores (`0-3,8`), of any number of cores, mean the same.
[[nodiscard]] bool same_cores(std::string_view a, std::string_view b);

/// One control group. What is written is read back: the kernel takes some values and does otherwise.
class Cgroup {
  public:
    /// @param folder such as `/sys/fs/cgroup/system.slice/t2.service`
    Cgroup(Files& files, std::string folder);

    [[nodiscard]] BackendStatus read(const char* name, std::string& text);
    [[nodiscard]] BackendStatus io_max(std::string_view device, IoMax& limits);
    [[nodiscard]] BackendStatus set_io_max(const IoMax& limits);
    /// Cores in the form of the kernel, empty for those of the group above; any number of them.
    /// @param all whether the tenant must get all of them: false for a list that it had before, whatever it got of it
    [[nodiscard]] BackendStatus set_cpus(std::string_view list, bool all = true);
    /// Cores of every thread of the group, for groups without the cpuset controller; threads that start later have those
    /// of the one that starts them.
    [[nodiscard]] BackendStatus set_affinity(const CpuSet& cpus);
    [[nodiscard]] std::string file(const char* name) const { return folder_ + "/" + name; }

  private:
    Files& files_;
    std::string folder_;
};

}  // namespace gpusched::host
