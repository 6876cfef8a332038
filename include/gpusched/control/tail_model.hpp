// SPDX-License-Identifier: Apache-2.0
// A linear model of a tenant's tail latency, learnt while it runs: what it would be somewhere else.
#pragma once

#include <array>
#include <cstddef>

namespace gpusched::control {

/// What a tenant's latency depends on, in one place.
struct Exposure {
    double pcie = 0;    ///< others' traffic on the root / its capacity, 0 to 1
    double io = 0;      ///< block I/O of the NUMA node / 2 GB/s, 0 to 1; 0 when pinned away from it
    double size = 1;    ///< SMs of the instance at the start / SMs of the instance
    double client = 0;  ///< `size` x activity of the client in the instance, 0 to 1, as its quota lets it

    [[nodiscard]] constexpr std::array<double, 5> terms() const noexcept {
        return {1, pcie, io, size, client};
    }
};

/// p99 = b0 + b1 pcie + b2 io + b3 size + b4 client, by recursive least squares (a Kalman filter) on averages of both
/// sides with the same weight, so that a line through the windows is a line through the averages.
///
/// It starts from what is assumed of any tenant, in parts of its target: a quarter for a root that others fill, a tenth
/// for block I/O, a quarter each for the instance's size and a client that is always busy; each is trusted to 15 %.
/// Only b0 may drift. Fixed size, no allocation; additions, multiplications and divisions only, in a fixed order, so the same input
/// gives the same bits.
class TailModel {
  public:
    static constexpr std::size_t terms = 5;

    /// The average over windows of what was seen and of the tail. Values must be usable (finite, not negative).
    /// @param weight of this window in the average of exposures, as in the average of the tail
    /// @param tail_ms that average
    /// @param tau_ms the target, which sets the scale
    void update(const Exposure& seen, double weight, double tail_ms, double tau_ms) noexcept;

    /// What the tail would be under `there` instead of the average seen: what is now, plus the differences. More
    /// interference or a smaller instance never helps, and all of the differences together explain no more than all of
    /// the tail.
    /// @param tail_ms average now
    [[nodiscard]] double predict(const Exposure& there, double tail_ms) const noexcept;

    /// The average of what was seen.
    [[nodiscard]] Exposure seen() const noexcept { return {seen_[1], seen_[2], seen_[3], seen_[4]}; }
    [[nodiscard]] bool known() const noexcept { return known_; }
    [[nodiscard]] const std::array<double, terms>& coefficients() const noexcept { return mean_; }

  private:
    std::array<double, terms> mean_{}, seen_{};
    std::array<std::array<double, terms>, terms> cov_{};
    bool known_ = false;
};

/// What to expect of a value that comes and goes: an average that rises fast and falls slowly, so it stays near the
/// upper end of what was seen for some time.
struct Outlook {
    double now = 0;   ///< average of the last few windows
    double high = 0;  ///< what to expect
    bool known = false;

    /// @param fall part of the way down per value, 0 to 1
    void update(double x, double fall) noexcept {
        now = known ? now + 0.3 * (x - now) : x;
        known = true;
        high += (now > high ? 0.1 : fall) * (now - high);
    }
    [[nodiscard]] double expected() const noexcept { return now > high ? now : high; }
};

/// The part of requests that miss a target when the p99 is `ratio` times it: 1 % at the target, times e for every 6 %
/// more, and a straight line from 15 % above. A rough scale to weigh tails against requests lost in a pause.
[[nodiscard]] double expected_misses(double ratio) noexcept;

}  // namespace gpusched::control
