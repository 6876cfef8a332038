// SPDX-License-Identifier: Apache-2.0
// Quantities: the one limit of amounts, times and weights.
#pragma once

#include <gpusched/core/fields.hpp>

#include <cstdint>

namespace gpusched {

/// Largest amount, time or weight that is taken anywhere: sums over a million tasks stay far from overflow.
inline constexpr std::int64_t largest_quantity = 1'000'000'000'000;

/// The rule of a field that holds an amount.
inline constexpr auto any_amount = within<std::int64_t>(0, largest_quantity);

/// The rule of a field that holds an amount of either sign, such as a priority or a time.
inline constexpr auto any_signed_amount = within<std::int64_t>(-largest_quantity, largest_quantity);

}  // namespace gpusched
