// SPDX-License-Identifier: Apache-2.0
// Descriptor: an open file, pipe or socket of this process, which is closed at the end.
#pragma once

#include <cerrno>
#include <string>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

namespace gpusched::host::detail {

class Descriptor {
  public:
    Descriptor() = default;
    /// @param fd what a system call gave; below 0 = nothing
    explicit Descriptor(int fd) noexcept : fd_(fd) {}
    /// A file, which programs that are started do not inherit. Where it cannot be opened, errno says why.
    Descriptor(const std::string& path, int flags) : fd_(::open(path.c_str(), flags | O_CLOEXEC, 0600)) {}
    Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    Descriptor& operator=(Descriptor&& other) noexcept {
        if (this != &other) {
            close();
            fd_ = std::exchange(other.fd_, -1);
        }
        return *this;
    }
    ~Descriptor() { close(); }

    void close() noexcept {
        if (fd_ >= 0) ::close(fd_);
        fd_ = -1;
    }
    /// The number for system calls; -1 where nothing is open.
    [[nodiscard]] int get() const noexcept { return fd_; }
    [[nodiscard]] explicit operator bool() const noexcept { return fd_ >= 0; }

  private:
    int fd_ = -1;
};

/// Both ends of a pipe, which programs that are started do not inherit.
struct Pipe {
    Descriptor out, in;  ///< read from `out` what was written into `in`
    /// @return whether it could be made; errno says why not
    [[nodiscard]] bool open() noexcept {
        int ends[2];
        if (::pipe2(ends, O_CLOEXEC) != 0) return false;
        out = Descriptor(ends[0]);
        in = Descriptor(ends[1]);
        return true;
    }
};

/// Writes the whole text; control files take it in one call or not at all.
/// @return 0, or the number of errno
inline int write_all(const Descriptor& file, std::string_view text) noexcept {
    while (!text.empty()) {
        const auto n = ::write(file.get(), text.data(), text.size());
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return n < 0 ? errno : EIO;
        text.remove_prefix(static_cast<std::size_t>(n));
    }
    return 0;
}

}  // namespace gpusched::host::detail
