// SPDX-License-Identifier: Apache-2.0
#include <gpusched/config.hpp>
#include <gpusched/host/detail/descriptor.hpp>
#include <gpusched/host/files.hpp>

#include <cerrno>
#include <cstdio>

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

namespace gpusched::host {

GPUSCHED_EXPORT int Files::set_affinity(std::int64_t, const CpuSet&) { return EOPNOTSUPP; }

GPUSCHED_EXPORT int SystemFiles::read(const std::string& path, std::string& text) {
    text.clear();
    // Not to wait for whoever may write into a pipe of that name.
    const detail::Descriptor file(path, O_RDONLY | O_NONBLOCK);
    if (!file) return errno;
    char buffer[16384];
    for (;;) {
        const auto n = ::read(file.get(), buffer, sizeof buffer);
        if (n < 0 && errno == EINTR) continue;
        const int error = n < 0 ? errno : text.size() > (std::size_t{16} << 20) ? EFBIG : 0;
        if (error != 0) {
            text.clear();
            return error;
        }
        if (n == 0) return 0;
        text.append(buffer, static_cast<std::size_t>(n));
    }
}

GPUSCHED_EXPORT int SystemFiles::write(const std::string& path, std::string_view text) {
    const detail::Descriptor file(path, O_WRONLY | O_TRUNC | O_NONBLOCK | O_NOFOLLOW);
    return file ? detail::write_all(file, text) : errno;
}

GPUSCHED_EXPORT int SystemFiles::create(const std::string& path, std::string_view text) {
    const detail::Descriptor file(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW);
    if (!file) return errno;
    if (const int error = detail::write_all(file, text); error != 0) return error;
    return ::fsync(file.get()) == 0 ? 0 : errno;
}

GPUSCHED_EXPORT int SystemFiles::rename(const std::string& from, const std::string& to) {
    if (std::rename(from.c_str(), to.c_str()) != 0) return errno;
    const auto slash = to.rfind('/');
    const detail::Descriptor folder(slash == std::string::npos ? "." : to.substr(0, slash + 1),
                                    O_RDONLY | O_DIRECTORY);
    if (!folder) return errno;
    return ::fsync(folder.get()) == 0 ? 0 : errno;
}

GPUSCHED_EXPORT int SystemFiles::set_affinity(std::int64_t thread, const CpuSet& cpus) {
    cpu_set_t set;
    CPU_ZERO(&set);
    static_assert(control::most_cores == CPU_SETSIZE);
    for (std::size_t c = 0; c < control::most_cores; ++c)
        if (cpus.contains(c)) CPU_SET(c, &set);
    return ::sched_setaffinity(static_cast<pid_t>(thread), sizeof set, &set) == 0 ? 0 : errno;
}

GPUSCHED_EXPORT BackendStatus errno_status(int error) noexcept {
    using enum BackendStatus;
    switch (error) {
    case 0:
        return ok;
    case EACCES:
    case EPERM:
    case EROFS:
    case ELOOP:  // a link where a file should be
        return no_permission;
    case ENOENT:
    case ENODEV:
    case ENXIO:
    case ESRCH:
    case ENOTDIR:
        return not_found;
    case EBUSY:
    case ETXTBSY:
        return in_use;
    case ENOSPC:
    case ENOMEM:
    case EDQUOT:
    case EMFILE:
        return insufficient_resources;
    case EINVAL:
    case EOPNOTSUPP:
    case ERANGE:
        return not_supported;
    case ETIMEDOUT:
        return timeout;
    default:
        return unknown;
    }
}

}  // namespace gpusched::host
