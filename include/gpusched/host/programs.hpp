// SPDX-License-Identifier: Apache-2.0
// Programs: what the room needs of programs that are run, the driver's and the tenants'.
#pragma once

#include <gpusched/config.hpp>

#include <span>
#include <string>
#include <string_view>

namespace gpusched::host {

/// What a program did.
struct CommandResult {
    int code = 0;
    bool timed_out = false;  ///< it was killed; whether it had an effect is not known
    std::string output{};    ///< standard output and error
};

/// Runs programs, one at a time.
class GPUSCHED_EXPORT Programs {
  public:
    virtual ~Programs() = default;

    /// Runs a program and waits for its end or a time limit.
    /// @param arguments the first one names the program
    /// @param input what it finds on its standard input
    /// @throws BackendError when it cannot be started
    [[nodiscard]] virtual CommandResult run(std::span<const std::string> arguments,
                                            std::string_view input) = 0;
    /// The same without an input.
    [[nodiscard]] CommandResult run(std::span<const std::string> arguments) { return run(arguments, {}); }

  protected:
    Programs() = default;
    Programs(const Programs&) = default;
    Programs& operator=(const Programs&) = default;
};

}  // namespace gpusched::host
