// SPDX-License-Identifier: Apache-2.0
// Value: what is gained by vacating nodes, less what the moves, and nodes that are opened for them, cost at a price.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace gpusched::consolidation {

/// Weights, and so values, are compared in thousandths.
inline constexpr std::int64_t milli = 1000;

/// milli x `weight` - `price` x `cost`, in thousandths of a unit of weight; what does not fit into 64 bits is cut off.
/// @param weight of the vacated nodes
/// @param cost sum of `move_cost` over the tasks whose last node or GPUs differ from their first
/// @param price thousandths for each unit of `cost`, >= 0
[[nodiscard]] constexpr std::int64_t value_milli(std::int64_t weight, std::int64_t cost,
                                                 std::int64_t price) noexcept {
    constexpr auto most = std::numeric_limits<std::int64_t>::max() / 4;
    const auto times = [](std::int64_t amount, std::int64_t factor) {
        if (factor == 0) return std::int64_t{0};
        return std::clamp(amount, -(most / factor), most / factor) * factor;
    };
    return times(weight, milli) - times(cost, price);
}

/// What it costs to open nodes of so much weight, in thousandths: `weight` x `open_price`, cut off likewise.
[[nodiscard]] constexpr std::int64_t opening_milli(std::int64_t weight, std::int64_t open_price) noexcept {
    return -value_milli(0, weight, open_price);
}

/// What moves cost for each unit of weight, in millionths; the more, the less they are worth. Nothing gained: the most there is.
[[nodiscard]] constexpr std::int64_t price_of_moves(std::int64_t weight, std::int64_t cost) noexcept {
    constexpr auto most = std::numeric_limits<std::int64_t>::max();
    return weight <= 0 ? most : std::min(cost, most / 1'000'000) * 1'000'000 / weight;
}

/// Whether moves that cost `cost`, and `opening` thousandths for nodes that they open, are worth `weight`.
[[nodiscard]] constexpr bool is_worth(std::int64_t weight, std::int64_t cost, std::int64_t price,
                                      std::int64_t opening = 0) noexcept {
    return price == 0 && opening == 0 ? weight >= 0 : value_milli(weight, cost, price) >= opening;
}

}  // namespace gpusched::consolidation
