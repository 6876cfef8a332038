// SPDX-License-Identifier: Apache-2.0
// Budget: one cheap question, "may I go on?", for time limits, cancellation and progress.
#pragma once

#include <gpusched/core/context.hpp>
#include <gpusched/core/stop_reason.hpp>

#include <atomic>
#include <optional>

namespace gpusched {

/// Watches a time limit and a stop token for one call of an algorithm, and reports progress on the way.
///
/// Shared by all threads of that call. Once exhausted it stays so. The first reason wins.
class Budget {
  public:
    /// @param context where the stop token, clock and progress hook come from; must outlive the budget
    /// @param time_limit_s seconds from now, >= 0; none means no limit
    explicit Budget(const Context& context, std::optional<double> time_limit_s = std::nullopt);

    /// True when the algorithm must wind up. Costs one clock reading at most; call it every few microseconds of work.
    [[nodiscard]] bool exhausted() noexcept;

    /// `completed` unless the budget was exhausted.
    [[nodiscard]] StopReason reason() const noexcept { return reason_.load(std::memory_order_relaxed); }

    /// Keeps `seconds` more at the end of the time limit for what has to be done once the search has stopped. Any thread.
    void reserve(double seconds) noexcept;
    /// Gives back all that was reserved.
    void release_reserve() noexcept { reserved_ns_ = 0; }

    /// Tells where the algorithm is. The hook sees it on the calling thread: at the first poll after the first report, then
    /// about every 50 ms.
    void report(const char* phase, std::int64_t done, std::int64_t total) noexcept;

    /// Seconds since construction.
    [[nodiscard]] double elapsed_s() const noexcept;

  private:
    const Context& context_;
    const Clock& clock_;
    std::int64_t start_ns_;
    std::optional<std::int64_t> deadline_ns_;
    std::atomic<std::int64_t> reserved_ns_{0};
    std::atomic<StopReason> reason_{StopReason::completed};
    std::atomic<const char*> phase_{""};
    std::atomic<std::int64_t> done_{0};
    std::atomic<std::int64_t> total_{0};
    std::int64_t last_report_ns_;
    bool reported_ = false;
    const void* owner_;
};

}  // namespace gpusched
