// SPDX-License-Identifier: Apache-2.0
// Budget: time limit, cancellation and progress of one call; StopReason: why an algorithm returned.
#pragma once

#include <gpusched/core/context.hpp>
#include <gpusched/core/enum_names.hpp>

#include <atomic>
#include <optional>

namespace gpusched {

/// Why an algorithm returned. All values except `completed` mean that a longer search might find more.
enum class StopReason {
    completed,    ///< it did everything that its options request
    time_limit,   ///< the deadline passed; the result is valid, but may differ between runs
    cancelled,    ///< the caller asked it to stop; the result is valid
    move_budget,  ///< the migration budget was used up
};

/// Watches a time limit and a stop token during one call of an algorithm, and reports progress.
///
/// Shared by all threads of that call. Once exhausted, a budget stays exhausted. The first reason wins.
class Budget {
  public:
    /// @param context provides the stop token, clock and progress hook; must outlive the budget
    /// @param time_limit_s seconds from now, >= 0; none means no limit
    explicit Budget(const Context& context, std::optional<double> time_limit_s = std::nullopt);

    /// True if the algorithm must stop. Costs at most one clock reading; call it every few microseconds of
    /// work.
    [[nodiscard]] bool exhausted() noexcept;

    /// `completed` unless the budget was exhausted.
    [[nodiscard]] StopReason reason() const noexcept { return reason_.load(std::memory_order_relaxed); }

    /// Ends the search `seconds` earlier, so that time is left for the work after it. May be called from any
    /// thread.
    void reserve(double seconds) noexcept;
    /// Releases all reserved time.
    void release_reserve() noexcept { reserved_ns_ = 0; }

    /// Reports the progress of the algorithm. The hook is called on the calling thread: at the first poll
    /// after the first report, then about every 50 ms.
    void report(const char* phase, std::int64_t done, std::int64_t total) noexcept;

    /// Seconds since construction.
    [[nodiscard]] double elapsed_s() const noexcept;
    /// Seconds until the time limit, at least 0; none without a limit.
    [[nodiscard]] std::optional<double> remaining_s() const noexcept;

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
