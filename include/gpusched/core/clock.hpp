// SPDX-License-Identifier: Apache-2.0
// Clocks: time is an argument, so that tests can hold it still.
#pragma once

#include <gpusched/config.hpp>

#include <atomic>
#include <cstdint>
#include <ctime>

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
    /// The one instance that is used when a context names no clock.
    [[nodiscard]] static const SteadyClock& instance() noexcept {
        static const SteadyClock clock;
        return clock;
    }
};

/// A clock that moves only when told to, or by a fixed step at every reading.
class GPUSCHED_EXPORT ManualClock final : public Clock {
  public:
    explicit ManualClock(std::int64_t step_ns = 0) : step_ns_(step_ns) {}
    [[nodiscard]] std::int64_t now_ns() const noexcept override { return now_ns_.fetch_add(step_ns_); }
    void advance(std::int64_t by_ns) noexcept { now_ns_ += by_ns; }

  private:
    mutable std::atomic<std::int64_t> now_ns_{0};
    std::int64_t step_ns_;
};

}  // namespace gpusched
