// SPDX-License-Identifier: Apache-2.0
#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/core/text.hpp>
#include <gpusched/host/detail/descriptor.hpp>
#include <gpusched/host/latency_source.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace gpusched::host {

GPUSCHED_EXPORT void LatencyLines::feed(std::string_view text) {
    while (!text.empty()) {
        const auto end = text.find('\n');
        const auto part = text.substr(0, end);
        if (rest_.size() + part.size() > 256) {
            too_long_ = true;
            rest_.clear();
        } else if (!too_long_) {
            rest_ += part;
        }
        if (end == std::string_view::npos) return;
        text.remove_prefix(end + 1);
        end_line();
    }
}

GPUSCHED_EXPORT void LatencyLines::end_line() {
    if (too_long_)
        ++now_.ignored;
    else
        line(rest_);
    drop_line();
}

GPUSCHED_EXPORT void LatencyLines::drop_line() noexcept {
    too_long_ = false;
    rest_.clear();
}

GPUSCHED_EXPORT void LatencyLines::cut_line() noexcept {
    ++now_.ignored;
    drop_line();
}

GPUSCHED_EXPORT void LatencyLines::line(std::string_view text) {
    const auto word = take_word(text);
    if (word.empty()) return;
    const bool alone = take_word(text).empty();
    if (word.front() == '+') {
        std::int64_t arrived = 0;
        if (!alone || !read_number(word.substr(1), arrived) || arrived < 0 || arrived > 1'000'000'000) {
            ++now_.ignored;
            return;
        }
        if (!tells_arrivals_) now_.arrived = 0;
        tells_arrivals_ = true;
        now_.arrived += arrived;
        return;
    }
    double ms = 0;
    if (!alone || !read_number(word, ms) || !(ms >= 0 && ms <= 1e7)) {
        ++now_.ignored;
        return;
    }
    quantiles_.record(ms);
    ++now_.count;
    now_.misses += ms > tau_ms_;
}

GPUSCHED_EXPORT LatencyWindow LatencyLines::end_window(bool known) {
    now_.known = known;
    now_.p50_ms = quantiles_.quantile_ms(0.5);
    now_.p95_ms = quantiles_.quantile_ms(0.95);
    now_.p99_ms = quantiles_.quantile_ms(0.99);
    now_.p999_ms = quantiles_.quantile_ms(0.999);
    quantiles_.advance();
    const auto out = now_;
    now_ = {};
    if (tells_arrivals_) now_.arrived = 0;
    return out;
}

// ---- file ----

GPUSCHED_EXPORT LatencyFile::LatencyFile(std::string path, double tau_ms)
    : path_(std::move(path)), lines_(tau_ms) {}

GPUSCHED_EXPORT bool LatencyFile::open() {
    file_ = detail::Descriptor(path_, O_RDONLY | O_NONBLOCK);
    if (!file_) return false;
    struct stat s {};
    // A directory, a device or a pipe has no tail.
    if (::fstat(file_.get(), &s) != 0 || !S_ISREG(s.st_mode) ||
        (first_ && ::lseek(file_.get(), 0, SEEK_END) < 0)) {
        file_.close();
        return false;
    }
    first_ = false;
    return true;
}

GPUSCHED_EXPORT bool LatencyFile::drain() {
    char buffer[65536];
    for (;;) {
        const auto n = ::read(file_.get(), buffer, sizeof buffer);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return n == 0;
        lines_.feed({buffer, static_cast<std::size_t>(n)});
    }
}

GPUSCHED_EXPORT LatencyWindow LatencyFile::window() {
    if (!file_ && !open()) {
        first_ = false;  // what comes now is new
        return lines_.end_window(false);
    }
    struct stat here {};
    bool good = ::fstat(file_.get(), &here) == 0;
    if (good && here.st_size < ::lseek(file_.get(), 0, SEEK_CUR)) {
        lines_.drop_line();
        good = ::lseek(file_.get(), 0, SEEK_SET) == 0;
    }
    good = good && drain();
    struct stat there {};
    const bool exists = ::stat(path_.c_str(), &there) == 0;
    if (!good || !exists || there.st_ino != here.st_ino || there.st_dev != here.st_dev) {
        // Replaced or gone: all of the old one has been read.
        file_.close();
        lines_.drop_line();
        good = exists && open() && drain();
    }
    return lines_.end_window(good);
}

// ---- socket ----

/// Takes datagrams from a socket as they come, until it is destroyed.
struct LatencySocket::Reader {
    LatencyLines& lines;
    int socket;
    detail::Pipe wake{};
    std::mutex access{};  ///< of the lines
    std::thread thread{};

    Reader(LatencyLines& l, int fd) : lines(l), socket(fd) {
        if (!wake.open()) return;
        // Signals are for the threads that were there before.
        sigset_t all, before;
        sigfillset(&all);
        ::pthread_sigmask(SIG_SETMASK, &all, &before);
        try {
            thread = std::thread([this] { run(); });
        } catch (const std::system_error&) {
            // Without it the socket is read at the end of each window.
        }
        ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    }
    ~Reader() {
        wake.in.close();
        if (thread.joinable()) thread.join();
    }
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;

    void run() {
        pollfd ready[2] = {{socket, POLLIN, 0}, {wake.out.get(), 0, 0}};
        while (::poll(ready, 2, -1) >= 0 || errno == EINTR) {
            if (ready[1].revents != 0 || (ready[0].revents & ~POLLIN) != 0) return;
            // Not to be one datagram behind another for each of a burst.
            const std::lock_guard lock(access);
            drain(1000);
        }
    }
    /// Takes what is there. @return whether nothing was left
    bool drain(int most) {
        char buffer[65536];
        for (int k = 0; k < most; ++k) {
            const auto n = ::recv(socket, buffer, sizeof buffer, MSG_DONTWAIT | MSG_TRUNC);
            if (n < 0) return true;
            const auto length = static_cast<std::size_t>(n);
            lines.feed({buffer, std::min(length, sizeof buffer)});
            // What was cut off may be the rest of a number.
            if (length > sizeof buffer)
                lines.cut_line();
            else
                lines.end_line();
        }
        return false;
    }
};

GPUSCHED_EXPORT LatencySocket::LatencySocket(std::string path, double tau_ms)
    : path_(std::move(path)), lines_(tau_ms) {
    if (path_.empty() || path_.size() >= sizeof(sockaddr_un::sun_path))
        throw InvalidInput(bad_value("socket", gpusched::quoted(path_), "a path of 1 to 107 characters"));
    static_cast<void>(open());
}

GPUSCHED_EXPORT LatencySocket::~LatencySocket() {
    if (!socket_) return;
    if (ours()) ::unlink(path_.c_str());
    close();
}

GPUSCHED_EXPORT void LatencySocket::close() {
    reader_.reset();
    socket_.close();
}

GPUSCHED_EXPORT bool LatencySocket::ours() const {
    struct stat s {};
    return ::stat(path_.c_str(), &s) == 0 && S_ISSOCK(s.st_mode) && s.st_ino == inode_;
}

GPUSCHED_EXPORT bool LatencySocket::open() {
    const auto make = [] {
        return detail::Descriptor(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    };
    socket_ = make();
    if (!socket_) return false;
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path_.data(), path_.size());
    const auto* const name = reinterpret_cast<const sockaddr*>(&address);
    struct stat s {};
    // A file left by a process that is gone refuses; one that is served, or is no socket, is not ours to remove.
    if (::lstat(path_.c_str(), &s) == 0 && S_ISSOCK(s.st_mode) &&
        ::connect(socket_.get(), name, sizeof address) != 0 && errno == ECONNREFUSED)
        ::unlink(path_.c_str());
    socket_ = make();
    if (socket_ && ::bind(socket_.get(), name, sizeof address) == 0 && ::stat(path_.c_str(), &s) == 0) {
        inode_ = s.st_ino;
        // Whoever may enter the folder may send: servers seldom run as root.
        static_cast<void>(::chmod(path_.c_str(), 0666));
        reader_ = std::make_unique<Reader>(lines_, socket_.get());
        return true;
    }
    close();
    return false;
}

GPUSCHED_EXPORT LatencyWindow LatencySocket::window() {
    if (!socket_ && !open()) return lines_.end_window(false);
    bool good = true;
    LatencyWindow out;
    {
        const std::lock_guard lock(reader_->access);
        // A flood must not hold the controller: what is left waits for the next window.
        static_cast<void>(reader_->drain(100'000));
        good = ours();
        if (good) out = lines_.end_window(true);
    }
    if (good) return out;
    close();
    if (!open()) return lines_.end_window(false);
    const std::lock_guard lock(reader_->access);  // the new socket may have received something already
    return lines_.end_window(true);
}

}  // namespace gpusched::host
