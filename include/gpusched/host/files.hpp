// SPDX-License-Identifier: Apache-2.0
// Files of the host: what the controller's backends read and write of /proc, /sys, cgroups and their own records.
#pragma once

#include <gpusched/config.hpp>
#include <gpusched/host/names.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace gpusched::host {

/// Access to files; every call returns 0 or a number of errno, so that tests can have any call fail.
class GPUSCHED_EXPORT Files {
  public:
    virtual ~Files() = default;

    /// All of a file. On an error `text` is empty.
    [[nodiscard]] virtual int read(const std::string& path, std::string& text) = 0;
    /// Writes into a file that exists, in one call, as the kernel's control files want it.
    [[nodiscard]] virtual int write(const std::string& path, std::string_view text) = 0;
    /// Makes or empties a file, writes it, and waits until it is on the disk.
    [[nodiscard]] virtual int create(const std::string& path, std::string_view text) = 0;
    /// Puts a file in place of another, and waits until the directory is on the disk.
    [[nodiscard]] virtual int rename(const std::string& from, const std::string& to) = 0;
    /// The cores on which a thread may run; those that its control group does not have are left out (EINVAL for none).
    /// Where it is not overridden: EOPNOTSUPP.
    [[nodiscard]] virtual int set_affinity(std::int64_t thread, const CpuSet& cpus);

  protected:
    Files() = default;
    Files(const Files&) = default;
    Files& operator=(const Files&) = default;
};

/// The files of this machine (POSIX). Reads up to 16 MiB (EFBIG beyond); neither `write` nor `create` follows a link in
/// the place of the file (ELOOP).
class GPUSCHED_EXPORT SystemFiles final : public Files {
  public:
    [[nodiscard]] int read(const std::string& path, std::string& text) override;
    [[nodiscard]] int write(const std::string& path, std::string_view text) override;
    [[nodiscard]] int create(const std::string& path, std::string_view text) override;
    [[nodiscard]] int rename(const std::string& from, const std::string& to) override;
    [[nodiscard]] int set_affinity(std::int64_t thread, const CpuSet& cpus) override;
};

/// The failure that a number of errno stands for.
[[nodiscard]] BackendStatus errno_status(int error) noexcept;

}  // namespace gpusched::host
