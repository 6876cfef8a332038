// SPDX-License-Identifier: Apache-2.0
// How many random instances a long property test takes.
#pragma once

#include <concepts>

namespace testing_support {

/// `all`, or a fifth of it where sanitizers make each several times as long. Thresholds on what happened scale along.
template <std::integral T>
constexpr T instances(T all) {
#ifdef GPUSCHED_TEST_SANITIZED
    return all / 5;
#else
    return all;
#endif
}

}  // namespace testing_support
