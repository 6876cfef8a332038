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

GPUSCHED_INLINE SystemCommand::SystemCommand(double limit_s, int held) : limit_s_(limit_s), held_(held) {
    if (!(limit_s > 0 && limit_s <= 600))
        throw InvalidInput(bad_value("limit_s", number_text(limit_s), "above 0, at most 600"));
}

GPUSCHED_INLINE CommandResult SystemCommand::run(std::span<const std::string> arguments) const {
    return run(arguments, {});
}

GPUSCHED_INLINE CommandResult SystemCommand::run(std::span<const std::string> arguments,
                                                 std::string_view input) const {
    using Clock = std::chrono::steady_clock;
    if (arguments.empty()) throw InvalidInput("arguments: none; expected a program");
    const auto failed = [&](int error) {
        return BackendError(arguments[0] + ": cannot be started: " + std::strerror(error));
    };
    if (input.size() > 4096)
        throw InvalidInput(bad_value("input", number_text(input.size()), "at most 4096 bytes"));
    int ends[2], in[2] = {-1, -1};
    if (::pipe2(ends, O_CLOEXEC) != 0) throw failed(errno);
    // All of it fits into the pipe before anybody reads, so writing neither waits nor raises a signal.
    if (!input.empty() && (::pipe2(in, O_CLOEXEC) != 0 || ::write(in[1], input.data(), input.size()) !=
                                                              static_cast<ssize_t>(input.size()))) {
        const auto why = failed(errno);
        for (const int fd : {ends[0], ends[1], in[0], in[1]})
            if (fd >= 0) ::close(fd);
        throw why;
    }
    if (in[1] >= 0) ::close(in[1]);
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    if (in[0] >= 0)
        posix_spawn_file_actions_adddup2(&files, in[0], 0);
    else
        posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, ends[1], 1);
    posix_spawn_file_actions_adddup2(&files, ends[1], 2);
    if (held_ >= 0) posix_spawn_file_actions_adddup2(&files, held_, 3);
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
    if (in[0] >= 0) ::close(in[0]);
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
