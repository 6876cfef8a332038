// SPDX-License-Identifier: Apache-2.0
// Errors: the caller's mistake (InvalidInput), the environment's (BackendError), this library's own (InternalError).
// Expected outcomes are values.
#pragma once

#include <gpusched/config.hpp>

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace gpusched {

/// The caller's mistake. Carries every problem that was found, each naming the field, the value and what was
/// expected. On a throw the inputs are unchanged. `ValueError` in Python.
class GPUSCHED_EXPORT InvalidInput : public std::invalid_argument {
  public:
    explicit InvalidInput(const std::string& problem);
    explicit InvalidInput(std::vector<std::string> problems);

    /// All problems, in the order in which they were found.
    [[nodiscard]] const std::vector<std::string>& problems() const noexcept { return problems_; }

  private:
    std::vector<std::string> problems_;
};

/// The environment's failure: a file that cannot be read or written, a missing solver, a device that is gone.
class GPUSCHED_EXPORT BackendError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

/// An error of this library: an answer failed its last check and was discarded. Please report it. `RuntimeError` in
/// Python.
class GPUSCHED_EXPORT InternalError : public std::logic_error {
  public:
    using std::logic_error::logic_error;
};

/// A name as it appears in messages.
[[nodiscard]] std::string quoted(std::string_view name);
/// "'a' or 'b'": one of these names.
template <class Names>
[[nodiscard]] std::string either_of(const Names& names) {
    std::string text;
    for (const std::string& name : names) text += (text.empty() ? "" : " or ") + gpusched::quoted(name);
    return text;
}

/// Collects problems up to a limit, then throws them together.
class Problems {
  public:
    explicit Problems(std::size_t limit = 100) : limit_(limit) {}

    void add(std::string problem);
    [[nodiscard]] std::size_t count() const noexcept { return count_; }
    [[nodiscard]] bool empty() const noexcept { return count_ == 0; }
    /// Further problems are only counted: their text need not be made.
    [[nodiscard]] bool full() const noexcept { return found_.size() >= limit_; }

    /// Throws `InvalidInput` with everything collected, or returns when there was nothing.
    void throw_if_any();

  private:
    std::vector<std::string> found_;
    std::size_t limit_;
    std::size_t count_ = 0;
};

}  // namespace gpusched
