// SPDX-License-Identifier: Apache-2.0
// Order: indices sorted by a key, equal ones in their old order, with the same result everywhere.
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

namespace gpusched {

/// The indices 0 .. count - 1 by ascending (key(index), index). O(count log count) calls of `key`.
template <class Key>
[[nodiscard]] std::vector<std::size_t> order_by(std::size_t count, Key&& key) {
    std::vector<std::size_t> order(count);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return std::pair<decltype(key(a)), std::size_t>(key(a), a) <
               std::pair<decltype(key(b)), std::size_t>(key(b), b);
    });
    return order;
}

}  // namespace gpusched
