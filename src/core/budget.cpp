// SPDX-License-Identifier: Apache-2.0
// Budget: checks of time and cancellation, calls of the progress hook.
#include <gpusched/config.hpp>
#include <gpusched/core/budget.hpp>
#include <gpusched/core/checks.hpp>

#include <algorithm>
#include <cmath>

namespace gpusched {

namespace detail {
// The address of a thread-local identifies a running thread. Cheaper than std::thread::id.
static const void* this_thread_tag() noexcept {
    thread_local const char tag = 0;
    return &tag;
}
constexpr std::int64_t progress_interval_ns = 50'000'000;
}  // namespace detail

GPUSCHED_EXPORT Budget::Budget(const Context& context, std::optional<double> time_limit_s)
    : context_(context), clock_(context.clock != nullptr ? *context.clock : SteadyClock::instance()),
      start_ns_(clock_.now_ns()), last_report_ns_(start_ns_), owner_(detail::this_thread_tag()) {
    if (!time_limit_s) return;
    Problems problems;
    check_at_least(problems, "time_limit", *time_limit_s, 0.0);
    problems.throw_if_any();
    if (*time_limit_s < 9e9) deadline_ns_ = start_ns_ + static_cast<std::int64_t>(*time_limit_s * 1e9);
}

GPUSCHED_EXPORT bool Budget::exhausted() noexcept {
    if (reason_.load(std::memory_order_relaxed) != StopReason::completed) return true;
    // The time is needed only for a deadline or a progress hook.
    const auto now = deadline_ns_ || context_.progress ? clock_.now_ns() : 0;
    if (context_.progress && owner_ == detail::this_thread_tag() &&
        (now - last_report_ns_ >= detail::progress_interval_ns || (!reported_ && *phase_.load() != '\0'))) {
        last_report_ns_ = now;
        reported_ = true;
        context_.progress({phase_.load(), done_.load(), total_.load()});
    }
    auto none_yet = StopReason::completed;
    if (context_.stop.stop_requested()) {
        reason_.compare_exchange_strong(none_yet, StopReason::cancelled);
        return true;
    }
    if (deadline_ns_ && now >= *deadline_ns_ - reserved_ns_.load(std::memory_order_relaxed)) {
        reason_.compare_exchange_strong(none_yet, StopReason::time_limit);
        return true;
    }
    return false;
}

GPUSCHED_EXPORT void Budget::reserve(double seconds) noexcept {
    reserved_ns_.fetch_add(static_cast<std::int64_t>(seconds * 1e9), std::memory_order_relaxed);
}

GPUSCHED_EXPORT void Budget::report(const char* phase, std::int64_t done, std::int64_t total) noexcept {
    phase_ = phase;
    done_ = done;
    total_ = total;
}

GPUSCHED_EXPORT double Budget::elapsed_s() const noexcept {
    return static_cast<double>(clock_.now_ns() - start_ns_) * 1e-9;
}

GPUSCHED_EXPORT std::optional<double> Budget::remaining_s() const noexcept {
    if (!deadline_ns_) return std::nullopt;
    return std::max(0.0, static_cast<double>(*deadline_ns_ - clock_.now_ns()) * 1e-9);
}

}  // namespace gpusched
