// SPDX-License-Identifier: Apache-2.0
// run: the controller's loop on a real host, one window after the other until somebody ends it.
#pragma once

#include <gpusched/core/context.hpp>
#include <gpusched/core/fields.hpp>
#include <gpusched/host/live.hpp>

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>

namespace gpusched::host {

/// What an operator asks of a loop that runs: from any thread, and from signal handlers, where `std::stop_source` may not be used.
class RunRequests {
  public:
    /// The window that runs is the last one.
    void stop() noexcept { stop_ = true; }
    /// An operator has looked: `LiveController::resume` before the next window, at once where the loop waits.
    void resume() noexcept { resume_ = true; }

    [[nodiscard]] bool stopped() const noexcept { return stop_; }
    [[nodiscard]] bool wants_resume() const noexcept { return resume_; }
    /// Whether somebody asked since the last call; however often, it is one request.
    [[nodiscard]] bool take_resume() noexcept { return resume_.exchange(false); }

  private:
    static_assert(std::atomic<bool>::is_always_lock_free, "signal handlers may touch nothing else");
    std::atomic<bool> stop_ = false, resume_ = false;
};

/// How `run` works.
struct RunOptions {
    std::optional<std::int64_t> windows{};  ///< ends after so many, >= 0; absent = no limit
    /// Is told every line: "window 3: ..." of windows, the lines of `resume` and `release` as they are. May throw, which ends the
    /// loop; empty = lines are dropped.
    std::function<void(const std::string& line)> say{};
};
template <class F>
constexpr void visit_fields(std::type_identity<RunOptions>, F&& field) {
    field("windows", &RunOptions::windows, at_least(0));
}

/// Runs a controller that has started: a window each `ControllerOptions::window_s`, the first after one such time, until `requests`
/// or the context ask for a stop or all windows are over; then, and when anything throws, it ends all limits of block I/O
/// (`LiveController::release`).
///
/// A window that a long change of instance delayed begins at once, and the ones after it come `window_s` after each other:
/// windows that were missed are not made up for. A request to resume is answered at once where the loop waits, and puts off
/// no window that is due, however many come.
///
/// @param context `clock` says when windows are due; `stop` ends the loop as `requests` do; `progress` is called with the number of
///     windows, at most about every 50 ms while the loop waits
/// @return how many windows there were
/// @throws InvalidInput for a number of windows below 0, and before `LiveController::start`; what a window or `say` throws, after the release
std::int64_t run(LiveController& controller, RunRequests& requests, const RunOptions& options = {},
                 const Context& context = {});

}  // namespace gpusched::host
