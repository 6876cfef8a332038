// SPDX-License-Identifier: Apache-2.0
// Counts of windows that the decision core shares with the parts that feed it.
#pragma once

namespace gpusched::control {

/// Number of windows of a latency quantile. After as many windows a quantile no longer reflects an earlier
/// configuration.
inline constexpr int quantile_windows = 3;

/// Number of windows in a row with fresh signals after which HOLD ends.
inline constexpr int windows_to_trust = 10;

/// A lease ends in the window nearest to its end: up to this part of a window early. The value is below one,
/// so that slightly late windows do not end the lease one window too soon.
inline constexpr double lease_early_windows = 0.99;

/// A validation without enough comparable windows is abandoned after this many times its length.
inline constexpr int most_validations = 4;

/// Number of dwells for which a change that made the tail worse is blocked.
inline constexpr int blocked_dwells = 4;

/// Maximum of the SUSPECT counter, in multiples of the persistence.
inline constexpr int most_persistences = 4;

}  // namespace gpusched::control
