// SPDX-License-Identifier: Apache-2.0
// Tail model: a linear model of a tenant's tail latency, learnt at run time, that predicts the tail
// elsewhere.
#pragma once

#include <array>
#include <cstddef>

namespace gpusched::control {

/// The inputs of a tenant's latency at one place.
struct Exposure {
    double pcie = 0;    ///< others' traffic on the root / its capacity, 0 to 1
    double io = 0;      ///< block I/O of the NUMA node / 2 GB/s, 0 to 1; 0 when pinned away from it
    double size = 1;    ///< SMs of the instance at the start / SMs of the instance
    double client = 0;  ///< `size` x activity of the client in the instance under its quota, 0 to 1

    [[nodiscard]] constexpr std::array<double, 5> terms() const noexcept {
        return {1, pcie, io, size, client};
    }
};

/// Models p99 = b0 + b1 pcie + b2 io + b3 size + b4 client by recursive least squares (a Kalman filter). It
/// uses averages of both sides with the same weight, so a line through the windows is a line through the
/// averages.
///
/// The initial coefficients are parts of the target: a quarter for a root filled by other tenants, a tenth
/// for block I/O, a quarter each for the instance's size and for a client that is always busy. Each has an
/// uncertainty of 15 %. Only b0 may drift. The size is fixed and nothing is allocated. All operations are
/// additions, multiplications and divisions in a fixed order, so the same input gives the same bits.
class TailModel {
  public:
    static constexpr std::size_t terms = 5;

    /// Adds one window to the average exposure and fits the average tail. Values must be usable (finite, not
    /// negative).
    /// @param weight of this window in the average exposure, the same as in the average tail
    /// @param tail_ms the average tail
    /// @param tau_ms the target, which sets the scale
    void update(const Exposure& seen, double weight, double tail_ms, double tau_ms) noexcept;

    /// Predicts the tail under `there` instead of the average exposure: the current tail plus the
    /// differences. More interference or a smaller instance never lowers it. The differences together explain
    /// at most the whole tail.
    /// @param tail_ms current average
    [[nodiscard]] double predict(const Exposure& there, double tail_ms) const noexcept;

    /// Returns the average exposure.
    [[nodiscard]] Exposure seen() const noexcept { return {seen_[1], seen_[2], seen_[3], seen_[4]}; }
    [[nodiscard]] bool known() const noexcept { return known_; }
    [[nodiscard]] const std::array<double, terms>& coefficients() const noexcept { return mean_; }

  private:
    std::array<double, terms> mean_{}, seen_{};
    std::array<std::array<double, terms>, terms> cov_{};
    bool known_ = false;
};

/// Expects a value that comes and goes: an average that rises fast and falls slowly. It stays near the recent
/// maximum for some time.
struct Outlook {
    double now = 0;   ///< average of the last few windows
    double high = 0;  ///< expected value
    bool known = false;

    /// @param fall part of the distance by which `high` falls per value, 0 to 1
    void update(double x, double fall) noexcept {
        now = known ? now + 0.3 * (x - now) : x;
        known = true;
        high += (now > high ? 0.1 : fall) * (now - high);
    }
    [[nodiscard]] double expected() const noexcept { return now > high ? now : high; }
};

/// Returns the part of requests that miss a target when the p99 is `ratio` times the target: 1 % at the
/// target, times e for every 6 % more, and a straight line from 15 % above. This rough scale compares tails
/// with requests lost in a pause.
[[nodiscard]] double expected_misses(double ratio) noexcept;

}  // namespace gpusched::control
