// SPDX-License-Identifier: Apache-2.0
// Context: the cancellation, clock, progress hook and threads that an algorithm uses.
#pragma once

#include <gpusched/config.hpp>
#include <gpusched/core/executor.hpp>

#include <atomic>
#include <cstdint>
#include <ctime>
#include <functional>
#include <stop_token>

namespace gpusched {

/// A monotonic clock. Implementations must be safe to read from several threads.
class GPUSCHED_EXPORT Clock {
  public:
    Clock() = default;
    Clock(const Clock&) = delete;
    Clock& operator=(const Clock&) = delete;
    virtual ~Clock() = default;
    /// Nanoseconds since an arbitrary start; never decreases.
    [[nodiscard]] virtual std::int64_t now_ns() const noexcept = 0;
};

/// The machine's monotonic clock.
class GPUSCHED_EXPORT SteadyClock final : public Clock {
  public:
    [[nodiscard]] std::int64_t now_ns() const noexcept override {
        std::timespec t{};
        clock_gettime(CLOCK_MONOTONIC, &t);
        return static_cast<std::int64_t>(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
    }
    /// The instance that is used if a context has no clock.
    [[nodiscard]] static const SteadyClock& instance() noexcept {
        static const SteadyClock clock;
        return clock;
    }
};

/// A clock that moves only by `advance`, or by a fixed step at every reading.
class GPUSCHED_EXPORT ManualClock final : public Clock {
  public:
    explicit ManualClock(std::int64_t step_ns = 0) : step_ns_(step_ns) {}
    [[nodiscard]] std::int64_t now_ns() const noexcept override { return now_ns_.fetch_add(step_ns_); }
    void advance(std::int64_t by_ns) noexcept { now_ns_ += by_ns; }

  private:
    mutable std::atomic<std::int64_t> now_ns_{0};
    std::int64_t step_ns_;
};

/// The progress of an algorithm. Phases run one after another; within a phase, `done` rises to `total`.
struct Progress {
    const char* phase = "";
    std::int64_t done = 0;
    std::int64_t total = 0;  ///< 0 = unknown
};

class LpSolver;

/// The environment of an algorithm. The default runs to the end on one thread.
struct Context {
    /// Cancellation; the algorithm returns its best valid result soon after.
    std::stop_token stop{};
    /// Time source for time limits; nullptr means the machine's monotonic clock.
    const Clock* clock = nullptr;
    /// Runs independent parts of the work; the default runs them one by one on the calling thread.
    ExecutorRef executor{};
    /// Called on the calling thread only, at most about every 50 ms. May request a stop; must not throw.
    std::function<void(const Progress&)> progress{};
    /// Solver of linear programs for the algorithms that need one; nullptr = none. See `milp::clp()`.
    const LpSolver* lp = nullptr;
};

}  // namespace gpusched
