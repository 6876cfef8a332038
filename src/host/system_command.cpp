// SPDX-License-Identifier: Apache-2.0
#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/core/text.hpp>
#include <gpusched/host/detail/descriptor.hpp>
#include <gpusched/host/files.hpp>
#include <gpusched/host/system_command.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace gpusched::host {

// Not Boost.Process, as of 1.74: its pipes are not close-on-exec, so programs started by other threads inherit them; its
// `wait_for` takes the SIGCHLD of the whole process over; children keep this process' signal mask and ignored signals.
// Together that is no way to run programs from a library inside somebody else's program. docs/host.md has the places.
namespace command_detail {

/// When a process was started, in ticks since the machine was; 0 for one that is not there, or has ended.
static std::uint64_t start_time(std::int64_t process) {
    SystemFiles files;
    std::string text;
    if (files.read("/proc/" + std::to_string(process) + "/stat", text) != 0) return 0;
    // The name may hold anything; behind its bracket come the state (field 3) and, as field 22, the time.
    auto rest = std::string_view(text).substr(std::min(text.rfind(')') + 1, text.size()));
    const auto state = take_word(rest);
    if (state.empty() || state == "Z" || state == "X") return 0;
    std::string_view word;
    for (int field = 4; field <= 22; ++field) word = take_word(rest);
    std::uint64_t time = 0;
    return read_number(word, time) ? time : 0;
}

/// Says in a file which process is at work, at once: whoever dies a moment later has said so.
struct Note {
    detail::Descriptor file{};
    Note(const std::string& path, pid_t process) {
        if (path.empty()) return;
        file = detail::Descriptor(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW);
        const auto text = std::to_string(process) + " " + std::to_string(start_time(process)) + "\n";
        if (file && detail::write_all(file, text) != 0) clear();
    }
    void clear() const {
        if (file && ::ftruncate(file.get(), 0) != 0) return;  // then the start time says that it is over
    }
};

}  // namespace command_detail

GPUSCHED_EXPORT void require_ends_of_programs() {
    struct sigaction children {};
    if (::sigaction(SIGCHLD, nullptr, &children) == 0 &&
        ((children.sa_flags & SA_NOCLDWAIT) != 0 || children.sa_handler == SIG_IGN))
        throw BackendError("SIGCHLD is ignored: the ends of programs would not be seen, so none is started");
}

GPUSCHED_EXPORT std::int64_t program_at_work(const std::string& note) {
    SystemFiles files;
    std::string text;
    if (files.read(note, text) != 0) return 0;
    std::string_view all = text;
    auto rest = take_line(all);
    std::int64_t process = 0;
    std::uint64_t time = 0;
    return read_number(take_word(rest), process) && process > 0 && read_number(take_word(rest), time) &&
                   time != 0 && command_detail::start_time(process) == time
               ? process
               : 0;
}

GPUSCHED_EXPORT SystemCommand::SystemCommand(double limit_s, int held, std::string note)
    : limit_s_(limit_s), held_(held), note_(std::move(note)) {
    if (!(limit_s > 0 && limit_s <= 600))
        throw InvalidInput(bad_value("limit_s", number_text(limit_s), "above 0, at most 600"));
}

GPUSCHED_EXPORT std::int64_t SystemCommand::left_behind() const {
    std::erase_if(left_, [](const auto& one) {
        const auto& [process, time] = one;
        ::waitpid(static_cast<pid_t>(process), nullptr, WNOHANG);
        return time == 0 || command_detail::start_time(process) != time;
    });
    return left_.empty() ? 0 : left_.front().first;
}

GPUSCHED_EXPORT CommandResult SystemCommand::run(std::span<const std::string> arguments,
                                                 std::string_view input) {
    using Clock = std::chrono::steady_clock;
    if (arguments.empty()) throw InvalidInput("arguments: none; expected a program");
    const auto failed = [&](int error) {
        return BackendError(arguments[0] + ": cannot be started: " + std::strerror(error));
    };
    require_ends_of_programs();
    if (input.size() > 4096)
        throw InvalidInput(bad_value("input", number_text(input.size()), "at most 4096 bytes"));
    detail::Pipe told, asked;  // what the program writes, and reads
    if (!told.open()) throw failed(errno);
    if (!input.empty()) {
        if (!asked.open()) throw failed(errno);
        // All of it fits into the pipe before anybody reads, so writing neither waits nor raises a signal.
        if (const int error = detail::write_all(asked.in, input); error != 0) throw failed(error);
        asked.in.close();
    }
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    if (asked.out)
        posix_spawn_file_actions_adddup2(&files, asked.out.get(), 0);
    else
        posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, told.in.get(), 1);
    posix_spawn_file_actions_adddup2(&files, told.in.get(), 2);
    if (held_ >= 0) posix_spawn_file_actions_adddup2(&files, held_, 3);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    // A group of its own, so that what the program starts ends with it.
    posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setpgroup(&attributes, 0);
    // What this process ignores or holds back is its own affair.
    sigset_t usual, none;
    sigemptyset(&usual), sigemptyset(&none);
    for (const int signal : {SIGPIPE, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM})
        sigaddset(&usual, signal);
    posix_spawnattr_setsigdefault(&attributes, &usual);
    posix_spawnattr_setsigmask(&attributes, &none);
    std::vector<std::string> copies(arguments.begin(), arguments.end());
    std::vector<char*> pointers;
    for (auto& copy : copies) pointers.push_back(copy.data());
    pointers.push_back(nullptr);
    pid_t child = 0;
    const int error = ::posix_spawnp(&child, pointers[0], &files, &attributes, pointers.data(), environ);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
    told.in.close();
    asked.out.close();
    if (error != 0) throw failed(error);
    CommandResult result;
    const command_detail::Note note(note_, child);
    const auto end =
        Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(limit_s_));
    const auto left_ms = [&] {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
        return static_cast<int>(std::max<long long>(0, left));
    };
    int status = 0;
    bool ended = false, open = true, seen = true;
    const auto look = [&] {
        const auto found = ::waitpid(child, &status, WNOHANG);
        // Somebody else took its end away: it is over, but how is not known.
        if (found < 0 && errno != EINTR) seen = false;
        return found == child || !seen;
    };
    // A program can close its output and go on, or end while something it started holds the output.
    const auto take = [&](int wait_ms) {
        pollfd wait{told.out.get(), POLLIN, 0};
        if (::poll(&wait, open ? 1 : 0, wait_ms) <= 0) return false;
        char buffer[4096];
        const auto count = ::read(told.out.get(), buffer, sizeof buffer);
        if (count > 0 && result.output.size() < (1u << 20))
            result.output.append(buffer, static_cast<std::size_t>(count));
        if (count == 0) open = false;
        return count > 0;
    };
    while (!ended) {
        if (left_ms() == 0) {
            result.timed_out = true;
            ::kill(-child, SIGKILL);
            // One that hangs in the kernel does not end.
            const auto patience = Clock::now() + std::chrono::seconds(5);
            while (!(ended = look()) && Clock::now() < patience) ::poll(nullptr, 0, 5);
            break;
        }
        if (!take(std::min(left_ms(), 20))) ended = look();
    }
    result.timed_out |= !seen;
    if (ended) note.clear();
    if (!ended) left_.emplace_back(child, command_detail::start_time(child));
    // What was written between the last look and the end; no more than a pipe holds, whoever else still writes.
    for (int k = 0; k < 64 && ended && !result.timed_out && take(0); ++k) {
    }
    result.code = !ended || !seen       ? 128 + SIGKILL
                  : WIFSIGNALED(status) ? 128 + WTERMSIG(status)
                                        : WEXITSTATUS(status);
    return result;
}

}  // namespace gpusched::host
