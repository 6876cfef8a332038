// Clocks and files of the live controller.
#pragma once

#include <gpusched/core/errors.hpp>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <unistd.h>

namespace GPUSCHED_NAMESPACE::host {

namespace live_detail {

inline double clock_s(clockid_t clock) {
    std::timespec t{};
    clock_gettime(clock, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

inline bool writable(const std::string& path) { return ::access(path.c_str(), R_OK | W_OK) == 0; }

/// A descriptor of a file that is opened and, at the end, closed.
struct Descriptor {
    int fd = -1;
    Descriptor() = default;
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    ~Descriptor() {
        if (fd >= 0) ::close(fd);
    }
    void open(const std::string& path, int flags) {
        fd = ::open(path.c_str(), flags | O_CLOEXEC, 0600);
        if (fd < 0) throw BackendError(path + ": cannot be opened: " + std::strerror(errno));
    }
};

/// Appends lines; at the end, what cannot be written must not keep limits from being ended.
struct AuditFile {
    Descriptor file{};
    bool must = true;
    void open(const std::string& path) {
        file.open(path, O_WRONLY | O_CREAT | O_APPEND);
        // Whoever wrote it before may have died in the middle of a line.
        Descriptor old;
        old.fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        const auto size = ::lseek(old.fd, 0, SEEK_END);
        char last = '\n';
        if (size > 0 && ::pread(old.fd, &last, 1, size - 1) == 1 && last != '\n') write("\n");
    }
    void write(std::string_view line) {
        while (file.fd >= 0 && !line.empty()) {
            const auto n = ::write(file.fd, line.data(), line.size());
            if (n < 0 && errno == EINTR) continue;
            if (n <= 0 && must)
                throw BackendError(std::string("audit log: cannot be written: ") + std::strerror(errno));
            if (n <= 0) return;
            line.remove_prefix(static_cast<std::size_t>(n));
        }
    }
};

}  // namespace live_detail

}  // namespace GPUSCHED_NAMESPACE::host
