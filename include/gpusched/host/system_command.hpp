// SPDX-License-Identifier: Apache-2.0
// Programs of the host, run one at a time with a time limit (POSIX).
#pragma once

#include <gpusched/config.hpp>
#include <gpusched/host/programs.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpusched::host {

/// Runs programs of this machine.
class GPUSCHED_EXPORT SystemCommand final : public Programs {
  public:
    /// @param limit_s how long a program may take, above 0 and at most 600; then it is killed
    /// @param held descriptor that programs inherit (as their number 3): a lock on its file lasts while they run, also
    ///     when this process is gone; -1 for none
    /// @param note file that says which program is at work, for `program_at_work`; empty: none
    /// @throws InvalidInput when out of range
    explicit SystemCommand(double limit_s = 30, int held = -1, std::string note = {});

    using Programs::run;
    /// Runs a program, found along PATH, without a shell, and with the usual answer to signals. The end of a program by a
    /// signal counts as 128 + signal, as in a shell. Output beyond 1 MiB is read and dropped. One that does not even end
    /// when it is killed is left behind after five seconds.
    /// @param input at most 4096 bytes
    /// @throws InvalidInput when there are no arguments, or too much input; BackendError when it cannot be started, also
    ///     where this process ignores SIGCHLD, so that its end would not be seen
    [[nodiscard]] CommandResult run(std::span<const std::string> arguments, std::string_view input) override;

    /// A program that did not end when it was killed, where it is still at work; 0 for none. Others may have been run since.
    [[nodiscard]] std::int64_t left_behind() const;

  private:
    double limit_s_;
    int held_;
    std::string note_;
    mutable std::vector<std::pair<std::int64_t, std::uint64_t>>
        left_{};  ///< processes, and when they were started
};

/// @throws BackendError where this process ignores SIGCHLD: the ends of programs would not be seen
void require_ends_of_programs();

/// The process that a note of `SystemCommand` names, where it is still at work: the program itself, not what it has
/// started and left behind. 0 for none. Another process of that number, started at another time, is not it.
[[nodiscard]] std::int64_t program_at_work(const std::string& note);

}  // namespace gpusched::host
