// SPDX-License-Identifier: Apache-2.0
#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/host/run.hpp>
#include <gpusched/host/tenant_access.hpp>

#include <algorithm>
#include <cmath>
#include <exception>
#include <string>
#include <vector>

namespace gpusched::host {

namespace detail {

/// A loop that runs.
class Loop {
  public:
    Loop(LiveController& controller, RunRequests& requests, const RunOptions& options, const Context& context)
        : controller_(controller), requests_(requests), options_(options), context_(context),
          clock_(context.clock != nullptr ? *context.clock : SteadyClock::instance()),
          period_ns_(std::llround(controller.options().window_s * 1e9)) {}

    void windows() {
        auto due = clock_.now_ns() + period_ns_;
        while (!ends()) {
            wait_until(due);
            if (stopped()) return;
            if (requests_.take_resume()) {
                tell(controller_.resume());
                // However many come: a window that is due is not put off, for limits end in it.
                if (clock_.now_ns() < due) continue;
            }
            tell(controller_.window(), "window " + std::to_string(done_) + ": ");
            ++done_;
            due = std::max(due + period_ns_, clock_.now_ns());
        }
    }
    void release() { tell(controller_.release()); }
    [[nodiscard]] std::int64_t done() const noexcept { return done_; }

  private:
    [[nodiscard]] bool stopped() const noexcept {
        return requests_.stopped() || context_.stop.stop_requested();
    }
    [[nodiscard]] bool ends() const noexcept {
        return stopped() || (options_.windows && done_ >= *options_.windows);
    }
    void wait_until(std::int64_t due) const {
        while (!stopped() && !requests_.wants_resume()) {
            if (context_.progress) context_.progress({"windows", done_, options_.windows.value_or(0)});
            const auto left = due - clock_.now_ns();
            if (left <= 0) return;
            // Not `sleep_for`: it goes on after each signal for what was left, and many signals make it endless.
            pause_for(std::min(static_cast<double>(left) * 1e-9, longest_pause_s));
        }
    }
    void tell(const std::vector<std::string>& lines, const std::string& before = {}) const {
        if (!options_.say) return;
        for (const auto& line : lines) options_.say(before + line);
    }

    static constexpr double longest_pause_s = 0.05;
    LiveController& controller_;
    RunRequests& requests_;
    const RunOptions& options_;
    const Context& context_;
    const Clock& clock_;
    std::int64_t period_ns_;
    std::int64_t done_ = 0;
};

}  // namespace detail

GPUSCHED_EXPORT std::int64_t run(LiveController& controller, RunRequests& requests, const RunOptions& options,
                                 const Context& context) {
    Problems problems;
    check_fields(problems, options);
    problems.throw_if_any();
    detail::Loop loop(controller, requests, options, context);
    try {
        loop.windows();
    } catch (...) {
        const auto cause = std::current_exception();
        try {
            loop.release();
        } catch (...) {  // what came first is what is to be told
        }
        std::rethrow_exception(cause);
    }
    loop.release();
    return loop.done();
}

}  // namespace gpusched::host
