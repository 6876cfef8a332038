// SPDX-License-Identifier: Apache-2.0
// Estimators: from samples of one window after the other to the few numbers and flags that the controller looks at.
#pragma once

#include <gpusched/control/windows.hpp>
#include <gpusched/core/enum_names.hpp>

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace gpusched::control {

/// Whether a value read from outside can be used: a finite number that is not negative.
[[nodiscard]] inline bool is_usable(double value) noexcept { return std::isfinite(value) && value >= 0; }

/// Whether it can also be right: not above `top`, as after a counter wrapped around.
[[nodiscard]] inline bool is_plausible(double value, double top) noexcept {
    return value >= 0 && value <= top;
}

/// Exponential moving average y_k = weight * x_k + (1 - weight) * y_(k-1) with y_0 = x_0. Values that cannot be used
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

/// A flag with two thresholds: on above `high`, off below `low`, else as before. Values that cannot be used keep it.
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

/// How far back the last usable window lies.
struct Freshness {
    std::int32_t stale_after = 10;  ///< windows missing in a row that make a signal stale
    std::int32_t missing = 0;       ///< in a row
    std::int32_t fresh = 0;         ///< in a row

    void update(bool present) noexcept {
        constexpr auto top = std::numeric_limits<std::int32_t>::max();
        missing = present ? 0 : missing + (missing < top);
        fresh = present ? fresh + (fresh < top) : 0;
    }
    [[nodiscard]] bool stale() const noexcept { return missing >= stale_after; }
};

/// How a load was assigned to a tenant. Only measured and inferred offenders may be throttled.
enum class Attribution : std::uint8_t { unknown, inferred, measured };
constexpr auto enum_names(Attribution) {
    return name_table<Attribution>({
        {Attribution::unknown, "unknown"},
        {Attribution::inferred, "inferred"},
        {Attribution::measured, "measured"},
    });
}

/// Whether a tenant's activity explains a pressure: their correlation, recent windows counting more.
///
/// Counters of PCIe are those of the whole GPU, not of MIG instances, so who caused the traffic has to be inferred.
struct ActivityCorrelation {
    double decay = 0.98;              ///< of the weight of what was seen, per window
    double threshold = 0.8;           ///< correlation from which the tenant is held to be the cause
    std::int32_t least_windows = 30;  ///< before anything is inferred

    std::int32_t windows = 0;
    double weight = 0, x = 0, y = 0, xx = 0, yy = 0, xy = 0;

    void update(double activity, double pressure) noexcept;
    /// Pearson's correlation, -1 to 1; 0 while either side has not varied.
    [[nodiscard]] double correlation() const noexcept;
    [[nodiscard]] Attribution attribution() const noexcept {
        return windows >= least_windows && correlation() >= threshold ? Attribution::inferred
                                                                      : Attribution::unknown;
    }
};

/// Latency quantiles over the samples of the last few windows.
///
/// A histogram per window with 256 buckets per octave of microseconds, as in HdrHistogram: a quantile is within 0.2 %
/// of the sample of that rank (exact below 0.512 ms up to the rounding to microseconds), memory is fixed, and nothing
/// is allocated after construction. Samples above 4,294 s count as that; samples that are no usable number are ignored.
class WindowQuantiles {
  public:
    /// @param windows how many windows count, 1 to 64
    /// @throws InvalidInput when out of range
    explicit WindowQuantiles(int windows = quantile_windows);

    /// A sample of the current window. O(1).
    void record(double latency_ms) noexcept;
    /// Starts the next window; the oldest one is forgotten.
    void advance() noexcept;
    /// Forgets everything, as after a pause whose samples cannot be compared.
    void clear() noexcept;

    /// Samples of all windows kept, and of the current one.
    [[nodiscard]] std::int64_t count() const noexcept { return total_; }
    [[nodiscard]] std::int64_t current_count() const noexcept { return counts_[current_]; }

    /// The smallest sample with at least `q` of all samples at or below it; NaN without samples.
    /// @param q 0 to 1; values outside count as the nearer end
    [[nodiscard]] double quantile_ms(double q) const noexcept;

  private:
    static constexpr int bits = 8;  // of a value that are kept
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
    std::vector<std::uint32_t> sum_;        // over windows
};

}  // namespace gpusched::control
