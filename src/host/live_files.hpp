// SPDX-License-Identifier: Apache-2.0
// Clocks and files of the live controller.
#pragma once

#include <gpusched/core/errors.hpp>
#include <gpusched/host/detail/descriptor.hpp>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <unistd.h>

namespace gpusched::host {

namespace live_detail {

inline double clock_s(clockid_t clock) {
    std::timespec t{};
    clock_gettime(clock, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

inline bool writable(const std::string& path) { return ::access(path.c_str(), R_OK | W_OK) == 0; }

/// @throws BackendError where the file cannot be opened
inline detail::Descriptor open_or_throw(const std::string& path, int flags) {
    detail::Descriptor file(path, flags);
    if (!file) throw BackendError(path + ": cannot be opened: " + std::strerror(errno));
    return file;
}

/// Appends lines; at the end, what cannot be written must not keep limits from being ended.
struct AuditFile {
    detail::Descriptor file{};
    bool must = true;
    void open(const std::string& path) {
        file = open_or_throw(path, O_WRONLY | O_CREAT | O_APPEND);
        // Whoever wrote it before may have died in the middle of a line.
        const detail::Descriptor old(path, O_RDONLY | O_NONBLOCK);
        const auto size = ::lseek(old.get(), 0, SEEK_END);
        char last = '\n';
        if (size > 0 && ::pread(old.get(), &last, 1, size - 1) == 1 && last != '\n') write("\n");
    }
    void write(std::string_view line) {
        if (!file) return;
        const int error = detail::write_all(file, line);
        if (error != 0 && must)
            throw BackendError(std::string("audit log: cannot be written: ") + std::strerror(error));
    }
};

}  // namespace live_detail

}  // namespace gpusched::host
