// SPDX-License-Identifier: Apache-2.0
// How many random instances a long property test takes.
#pragma once

#include <concepts>
#include <cstdlib>
#include <stdexcept>
#include <string>

namespace testing_support {

/// The value of GPUSCHED_TEST_TIMES, or 1 if it is not set.
inline int times() {
    static const int wanted = [] {
        const auto* const wish = std::getenv("GPUSCHED_TEST_TIMES");
        const int number = wish == nullptr ? 1 : std::atoi(wish);
        if (number < 1 || number > 1'000'000)
            throw std::invalid_argument("GPUSCHED_TEST_TIMES is '" + std::string(wish) +
                                        "', not a whole number from 1 to 1000000");
        return number;
    }();
    return wanted;
}

/// Returns `all`, or a tenth of it under sanitizers, which make each instance several times as long; times the value of
/// GPUSCHED_TEST_TIMES. Thresholds on what happened scale along.
template <std::integral T>
T instances(T all) {
#ifdef GPUSCHED_TEST_SANITIZED
    all /= 10;
#endif
    return all * static_cast<T>(times());
}

/// A test that goes through cases in order takes each, or every fifth if sanitizers make it slow.
#ifdef GPUSCHED_TEST_SANITIZED
inline constexpr int stride = 5;
#else
inline constexpr int stride = 1;
#endif

}  // namespace testing_support
