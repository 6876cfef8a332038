#pragma once

#include <gpusched/control/system_command.hpp>
#include <gpusched/core/checks.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace gpusched::control {

GPUSCHED_INLINE SystemCommand::SystemCommand(double limit_s) : limit_s_(limit_s) {
    if (!(limit_s > 0 && limit_s <= 600))
        throw InvalidInput(bad_value("limit_s", number_text(limit_s), "above 0, at most 600"));
}

GPUSCHED_INLINE CommandResult SystemCommand::run(std::span<const std::string> arguments) const {
    using Clock = std::chrono::steady_clock;
    if (arguments.empty()) throw InvalidInput("arguments: none; expected a program");
    const auto failed = [&](int error) {
        return BackendError(arguments[0] + ": cannot be started: " + std::strerror(error));
    };
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw failed(errno);
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, ends[1], 1);
    posix_spawn_file_actions_adddup2(&files, ends[1], 2);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    // A group of its own, so that what the program starts ends with it.
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    posix_spawnattr_setpgroup(&attributes, 0);
    std::vector<std::string> copies(arguments.begin(), arguments.end());
    std::vector<char*> pointers;
    for (auto& copy : copies) pointers.push_back(copy.data());
    pointers.push_back(nullptr);
    pid_t child = 0;
    const int error = ::posix_spawnp(&child, pointers[0], &files, &attributes, pointers.data(), environ);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
    ::close(ends[1]);
    if (error != 0) {
        ::close(ends[0]);
        throw failed(error);
    }
    CommandResult result;
    const auto end =
        Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(limit_s_));
    const auto left_ms = [&] {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
        return static_cast<int>(std::max<long long>(0, left));
    };
    int status = 0;
    bool ended = false, open = true;
    // A program can close its output and go on, or end while something it started holds the output.
    const auto take = [&](int wait_ms) {
        pollfd wait{ends[0], POLLIN, 0};
        if (::poll(&wait, open ? 1 : 0, wait_ms) <= 0) return false;
        char buffer[4096];
        const auto count = ::read(ends[0], buffer, sizeof buffer);
        if (count > 0 && result.output.size() < (1u << 20))
            result.output.append(buffer, static_cast<std::size_t>(count));
        if (count == 0) open = false;
        return count > 0;
    };
    while (!ended) {
        if (left_ms() == 0) {
            result.timed_out = true;
            ::kill(-child, SIGKILL);
            while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
            }
            break;
        }
        if (!take(std::min(left_ms(), 20))) ended = ::waitpid(child, &status, WNOHANG) == child;
    }
    // What was written between the last look and the end; no more than a pipe holds, whoever else still writes.
    for (int k = 0; k < 64 && ended && take(0); ++k) {
    }
    ::close(ends[0]);
    result.code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    return result;
}

}  // namespace gpusched::control
