// SPDX-License-Identifier: Apache-2.0
// How many random instances a long property test takes.
#pragma once

#include "support/catch.hpp"

namespace testing_support {

/// The value of GPUSCHED_TEST_TIMES. If it is not set, 1, or 0.2 under sanitizers, which make each instance several times as long.
inline double times() {
    static const double wanted = [] {
#ifdef GPUSCHED_TEST_SANITIZED
        constexpr double usual = 0.2;
#else
        constexpr double usual = 1;
#endif
        const auto* const wish = std::getenv("GPUSCHED_TEST_TIMES");
        const double number = wish == nullptr ? usual : std::atof(wish);
        if (!(number >= 0.1 && number <= 1'000'000))
            throw std::invalid_argument("GPUSCHED_TEST_TIMES is '" + std::string(wish) +
                                        "', not a number from 0.1 to 1000000");
        return number;
    }();
    return wanted;
}

/// Returns `all` times `times()`. Thresholds on what happened scale along.
template <std::integral T>
T instances(T all) {
    return static_cast<T>(static_cast<double>(all) * times());
}

/// A test that goes through cases in order takes each, or every fifth if sanitizers make it slow.
#ifdef GPUSCHED_TEST_SANITIZED
inline constexpr int stride = 5;
#else
inline constexpr int stride = 1;
#endif

}  // namespace testing_support
