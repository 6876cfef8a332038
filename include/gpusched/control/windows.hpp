// SPDX-License-Identifier: Apache-2.0
// Counts of windows on which the decision core and the parts that feed it agree.
#pragma once

namespace gpusched::control {

/// Quantiles of latencies are over so many windows; after as many more they have forgotten a change.
inline constexpr int quantile_windows = 3;

/// HOLD ends after so many windows in a row with fresh signals.
inline constexpr int windows_to_trust = 10;

/// A lease ends in the window that is nearest before its end: so much of a window early. Less than a whole one, so that
/// windows that come a little late do not end it one window too soon.
inline constexpr double lease_early_windows = 0.99;

/// A validation without enough comparable windows gives up after so many times its length.
inline constexpr int most_validations = 4;

/// A change that made it worse is not tried again for so many dwells.
inline constexpr int blocked_dwells = 4;

/// The counter of SUSPECT grows to so many times the persistence.
inline constexpr int most_persistences = 4;

}  // namespace gpusched::control
