// SPDX-License-Identifier: Apache-2.0
// Texts of errors, and the collection of problems.
#include <gpusched/config.hpp>
#include <gpusched/core/errors.hpp>

#include <utility>

namespace gpusched {

namespace detail {
static std::string join_problems(const std::vector<std::string>& problems) {
    if (problems.size() == 1) return problems.front();
    std::string text = std::to_string(problems.size()) + " problems:";
    for (const auto& problem : problems) text += "\n  - " + problem;
    return text;
}
}  // namespace detail

GPUSCHED_EXPORT InvalidInput::InvalidInput(const std::string& problem) : InvalidInput(std::vector{problem}) {}

GPUSCHED_EXPORT InvalidInput::InvalidInput(std::vector<std::string> problems)
    : std::invalid_argument(detail::join_problems(problems)), problems_(std::move(problems)) {}

GPUSCHED_EXPORT std::string quoted(std::string_view name) { return "'" + std::string(name) + "'"; }

GPUSCHED_EXPORT void Problems::add(std::string problem) {
    if (found_.size() < limit_) found_.push_back(std::move(problem));
    ++count_;
}

GPUSCHED_EXPORT void Problems::throw_if_any() {
    if (count_ == 0) return;
    if (count_ > found_.size())
        found_.push_back("... and " + std::to_string(count_ - found_.size()) + " more");
    count_ = 0;
    throw InvalidInput(std::move(found_));
}

}  // namespace gpusched
