// Files of the host: what the controller's backends read and write of /proc, /sys, cgroups and their own records.
#pragma once

#include <gpusched/host/names.hpp>

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace gpusched::host {

/// Access to files; every call returns 0 or a number of errno, so that tests can have any call fail.
template <class F>
concept FileAccess = requires(F& files, const std::string& path, std::string& text, std::string_view value) {
    { files.read(path, text) } -> std::same_as<int>;
    { files.write(path, value) } -> std::same_as<int>;
    { files.create(path, value) } -> std::same_as<int>;
    { files.rename(path, path) } -> std::same_as<int>;
};

/// The files of this machine (POSIX).
class SystemFiles {
  public:
    /// All of a file, up to 16 MiB (EFBIG beyond). On an error `text` is empty.
    [[nodiscard]] int read(const std::string& path, std::string& text);
    /// Writes into a file that exists, in one call, as the kernel's control files want it. Neither this nor `create`
    /// follows a link in the place of the file (ELOOP).
    [[nodiscard]] int write(const std::string& path, std::string_view text);
    /// Makes or empties a file, writes it, and waits until it is on the disk.
    [[nodiscard]] int create(const std::string& path, std::string_view text);
    /// Puts a file in place of another, and waits until the directory is on the disk.
    [[nodiscard]] int rename(const std::string& from, const std::string& to);
    /// The cores on which a thread may run; those that its control group does not have are left out (EINVAL for none).
    [[nodiscard]] int set_affinity(std::int64_t thread, const CpuSet& cpus);
};

/// The failure that a number of errno stands for.
[[nodiscard]] BackendStatus errno_status(int error) noexcept;

}  // namespace gpusched::host

#ifdef GPUSCHED_HEADER_ONLY
#include <gpusched/host/impl/files.ipp>
#endif
