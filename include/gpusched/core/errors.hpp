// SPDX-License-Identifier: Apache-2.0
// Errors: a mistake of the caller (InvalidInput), of the environment (BackendError) or of this library
// (InternalError). Expected outcomes are values, not errors.
#pragma once

#include <gpusched/config.hpp>

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace gpusched {

/// A mistake of the caller. Contains every problem found, each with the field, the value and the expectation.
/// The inputs are unchanged. `ValueError` in Python.
class GPUSCHED_EXPORT InvalidInput : public std::invalid_argument {
  public:
    explicit InvalidInput(const std::string& problem);
    explicit InvalidInput(std::vector<std::string> problems);

    /// All problems, in the order in which they were found.
    [[nodiscard]] const std::vector<std::string>& problems() const noexcept { return problems_; }

  private:
    std::vector<std::string> problems_;
};

/// A failure of the environment: a file that cannot be read or written, a missing solver, a lost device.
class GPUSCHED_EXPORT BackendError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

/// A bug in this library: a result failed its final check and was discarded. Please report it. `RuntimeError`
/// in Python.
class GPUSCHED_EXPORT InternalError : public std::logic_error {
  public:
    using std::logic_error::logic_error;
};

/// A name in quotes, for messages.
[[nodiscard]] std::string quoted(std::string_view name);
/// The names in quotes, such as "'a' or 'b'".
template <class Names>
[[nodiscard]] std::string either_of(const Names& names) {
    std::string text;
    for (const std::string& name : names) text += (text.empty() ? "" : " or ") + gpusched::quoted(name);
    return text;
}

/// Collects problems up to a limit and throws them together.
class Problems {
  public:
    explicit Problems(std::size_t limit = 100) : limit_(limit) {}

    void add(std::string problem);
    [[nodiscard]] std::size_t count() const noexcept { return count_; }
    [[nodiscard]] bool empty() const noexcept { return count_ == 0; }
    /// True if further problems are only counted, so that their text is not needed.
    [[nodiscard]] bool full() const noexcept { return found_.size() >= limit_; }

    /// Throws `InvalidInput` with all problems; returns if there is none.
    void throw_if_any();

  private:
    std::vector<std::string> found_;
    std::size_t limit_;
    std::size_t count_ = 0;
};

/// Calls `check`, and adds the problems of an InvalidInput to the others.
template <class Check>
void collect(Problems& problems, const Check& check) {
    try {
        check();
    } catch (const InvalidInput& error) {
        for (const auto& problem : error.problems()) problems.add(problem);
    }
}

}  // namespace gpusched
