// SPDX-License-Identifier: Apache-2.0
// Estimators: reduce the samples of successive windows to the few numbers and flags that the controller
// uses, and predict a tenant's tail elsewhere.
#pragma once

#include <gpusched/core/enum_names.hpp>

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace gpusched::control {

/// Number of windows of a latency quantile. After as many windows a quantile no longer reflects an earlier
/// configuration.
inline constexpr int quantile_windows = 3;

/// Returns whether a value from outside can be used: finite and not negative.
[[nodiscard]] inline bool is_usable(double value) noexcept { return std::isfinite(value) && value >= 0; }

/// Returns whether a value is usable and at most `top`. A counter that wrapped around gives larger values.
[[nodiscard]] inline bool is_plausible(double value, double top) noexcept {
    return value >= 0 && value <= top;
}

/// Exponential moving average y_k = weight * x_k + (1 - weight) * y_(k-1) with y_0 = x_0. Unusable values
/// (see `is_usable`) change nothing.
struct Ema {
    double weight = 0.3;  ///< of the newest value, above 0 and at most 1
    double value = 0;
    bool known = false;

    void update(double x) noexcept {
        if (!is_usable(x)) return;
        value = known ? weight * x + (1 - weight) * value : x;
        known = true;
    }
    void clear() noexcept {
        value = 0;
        known = false;
    }
};

/// A flag with two thresholds: on above `high`, off below `low`, unchanged in between. Unusable values do not
/// change it.
struct SchmittTrigger {
    double high = 0;
    double low = 0;
    bool on = false;

    bool update(double x) noexcept {
        if (!is_usable(x)) return on;
        if (x > high) on = true;
        if (x < low) on = false;
        return on;
    }
};

/// Counts how long a signal has been missing or present.
struct Freshness {
    std::int32_t stale_after = 10;  ///< missing windows in a row that make a signal stale
    std::int32_t missing = 0;       ///< in a row
    std::int32_t fresh = 0;         ///< in a row

    void update(bool present) noexcept {
        constexpr auto top = std::numeric_limits<std::int32_t>::max();
        missing = present ? 0 : missing + (missing < top);
        fresh = present ? fresh + (fresh < top) : 0;
    }
    [[nodiscard]] bool stale() const noexcept { return missing >= stale_after; }
};

/// How a load was attributed to a tenant. Only measured and inferred offenders may be throttled.
enum class Attribution : std::uint8_t { unknown, inferred, measured };

/// Correlates a tenant's activity with a pressure; recent windows have more weight.
///
/// PCIe counters cover the whole GPU, not single MIG instances, so the cause of the traffic must be inferred.
struct ActivityCorrelation {
    double decay = 0.98;              ///< factor per window on the weight of earlier windows
    double threshold = 0.8;           ///< correlation from which the tenant is the cause
    std::int32_t least_windows = 30;  ///< windows before anything is inferred

    std::int32_t windows = 0;
    double weight = 0, x = 0, y = 0, xx = 0, yy = 0, xy = 0;

    void update(double activity, double pressure) noexcept;
    /// Returns Pearson's correlation, -1 to 1; 0 while either side is constant.
    [[nodiscard]] double correlation() const noexcept;
    [[nodiscard]] Attribution attribution() const noexcept {
        return windows >= least_windows && correlation() >= threshold ? Attribution::inferred
                                                                      : Attribution::unknown;
    }
};

/// Latency quantiles over the samples of the last few windows.
///
/// Each window has a histogram with 256 buckets per octave of microseconds, as in HdrHistogram. A quantile is
/// within 0.2 % of the sample of that rank, and exact up to the rounding to microseconds below 0.512 ms.
/// Memory is fixed; nothing is allocated after construction. Samples above 4,294 s count as 4,294 s; unusable
/// samples are ignored.
class WindowQuantiles {
  public:
    /// @param windows number of windows that count, 1 to 64
    /// @throws InvalidInput if out of range
    explicit WindowQuantiles(int windows = quantile_windows);

    /// Adds a sample to the current window. O(1).
    void record(double latency_ms) noexcept;
    /// Starts the next window and drops the oldest one.
    void advance() noexcept;
    /// Drops all samples, for example after a pause that makes samples incomparable.
    void clear() noexcept;

    /// Returns the number of samples in all kept windows.
    [[nodiscard]] std::int64_t count() const noexcept { return total_; }

    /// Returns the smallest sample with at least a fraction `q` of all samples at or below it; NaN without
    /// samples.
    /// @param q 0 to 1; values outside are clamped
    [[nodiscard]] double quantile_ms(double q) const noexcept;

  private:
    static constexpr int bits = 8;  // kept per value
    static constexpr std::uint64_t top_us = 0xFFFF'FFFF;
    static constexpr std::size_t buckets = ((32 - bits) + 1) * (std::size_t{1} << bits);

    static std::size_t bucket_of(std::uint64_t us) noexcept {
        const int shift = std::bit_width(us) - bits - 1;
        if (shift <= 0) return static_cast<std::size_t>(us);
        return static_cast<std::size_t>((static_cast<std::uint64_t>(shift) << bits) + (us >> shift));
    }
    static double middle_us(std::size_t bucket) noexcept;

    std::size_t windows_;
    std::size_t current_ = 0;
    std::int64_t total_ = 0;
    std::vector<std::int64_t> counts_;      // per window
    std::vector<std::uint32_t> histogram_;  // window by bucket
    std::vector<std::uint32_t> sum_;        // sum over the windows
};

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
