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
template <FileAccess Files>
class Cgroup {
  public:
    /// @param folder such as `/sys/fs/cgroup/system.slice/t2.service`
    Cgroup(Files& files, std::string folder) : files_(files), folder_(std::move(folder)) {}

    [[nodiscard]] BackendStatus read(const char* name, std::string& text) {
        return errno_status(files_.read(file(name), text));
    }
    [[nodiscard]] BackendStatus io_max(std::string_view device, IoMax& limits) {
        std::string text;
        if (const auto status = read("io.max", text); status != BackendStatus::ok) return status;
        try {
            limits = parse_io_max(text, device);
        } catch (const BackendError&) {
            return BackendStatus::invalid_state;
        }
        return BackendStatus::ok;
    }
    [[nodiscard]] BackendStatus set_io_max(const IoMax& limits) {
        const int error = files_.write(file("io.max"), io_max_text(limits));
        if (error != 0) return errno_status(error);
        IoMax now;
        if (const auto status = io_max(limits.device, now); status != BackendStatus::ok) return status;
        return now == limits ? BackendStatus::ok : BackendStatus::invalid_state;
    }
    /// Cores in the form of the kernel, empty for those of the group above; any number of them.
    /// @param all whether the tenant must get all of them: false for a list that it had before, whatever it got of it
    [[nodiscard]] BackendStatus set_cpus(std::string_view list, bool all = true) {
        // An empty write does nothing; a newline clears.
        const int error = files_.write(file("cpuset.cpus"), std::string(list) + "\n");
        if (error != 0) return errno_status(error);
        std::string now;
        if (const auto status = read("cpuset.cpus", now); status != BackendStatus::ok) return status;
        if (!same_cores(now, list)) return BackendStatus::invalid_state;
        if (list.empty() || !all) return BackendStatus::ok;
        // The group above may have fewer cores: then these are not what the tenant gets.
        if (const auto status = read("cpuset.cpus.effective", now); status != BackendStatus::ok)
            return status;
        return same_cores(now, list) ? BackendStatus::ok : BackendStatus::not_supported;
    }
    /// Cores of every thread of the group, for groups without the cpuset controller; threads that start later have those
    /// of the one that starts them. Needs `Files::set_affinity(thread, cpus)`.
    [[nodiscard]] BackendStatus set_affinity(const CpuSet& cpus) {
        if constexpr (requires { files_.set_affinity(std::int64_t{}, cpus); }) {
            std::vector<std::int64_t> done;
            // Threads come while others are set; a few looks find them all unless they never stop coming.
            for (int look = 0; look < 8; ++look) {
                std::string text;
                if (const auto status = read("cgroup.threads", text); status != BackendStatus::ok)
                    return status;
                std::vector<std::int64_t> found;
                if (!parse_threads(text, found)) return BackendStatus::invalid_state;
                bool more = false;
                for (const auto thread : found) {
                    if (std::find(done.begin(), done.end(), thread) != done.end()) continue;
                    more = true;
                    done.push_back(thread);
                    const auto status = errno_status(files_.set_affinity(thread, cpus));
                    // It may have ended meanwhile.
                    if (status != BackendStatus::ok && status != BackendStatus::not_found) return status;
                }
                if (!more) return BackendStatus::ok;
            }
            return BackendStatus::timeout;
        } else {
            return BackendStatus::not_supported;
        }
    }
    /// @param weight 1 to 10000; the kernel's default is 100
    [[nodiscard]] BackendStatus set_cpu_weight(int weight) {
        const auto text = std::to_string(weight);
        if (const int error = files_.write(file("cpu.weight"), text); error != 0) return errno_status(error);
        std::string now;
        if (const auto status = read("cpu.weight", now); status != BackendStatus::ok) return status;
        while (!now.empty() && now.back() == '\n') now.pop_back();
        return now == text ? BackendStatus::ok : BackendStatus::invalid_state;
    }
    [[nodiscard]] std::string file(const char* name) const { return folder_ + "/" + name; }

  private:
    Files& files_;
    std::string folder_;
};

}  // namespace gpusched::host

#ifdef GPUSCHED_HEADER_ONLY
#include <gpusched/host/impl/cgroup.ipp>
#endif
