// SPDX-License-Identifier: Apache-2.0
// A set of GPUs on one node, as a bit mask (GPU i is bit i; a node has at most 64).
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace gpusched {

/// Most GPUs a node may have.
inline constexpr int max_gpus_per_node = 64;

/// One whole GPU in thousandths; fractions are 1 .. 999.
inline constexpr int whole_gpu_milli = 1000;

/// A set of GPU indices of one node.
using GpuMask = std::uint64_t;

/// The mask holding GPU `gpu` alone.
[[nodiscard]] constexpr GpuMask gpu_bit(int gpu) noexcept { return GpuMask{1} << gpu; }

/// The mask of GPUs 0 .. count - 1.
[[nodiscard]] constexpr GpuMask first_gpus(int count) noexcept {
    return count == 0 ? GpuMask{0} : ~GpuMask{0} >> (max_gpus_per_node - count);
}

namespace detail {
inline constexpr auto bits_of_byte = [] {
    std::array<std::uint8_t, 256> bits{};
    for (unsigned byte = 0; byte < bits.size(); ++byte)
        bits[byte] = static_cast<std::uint8_t>(std::popcount(byte));
    return bits;
}();
}  // namespace detail

/// How many GPUs the mask holds. Without a processor flag std::popcount is a call; nodes of up to 8 GPUs get by without it.
[[nodiscard, gnu::always_inline]] constexpr int gpu_count(GpuMask mask) noexcept {
    return mask < detail::bits_of_byte.size() ? detail::bits_of_byte[mask] : std::popcount(mask);
}

/// Does the mask hold `count` GPUs or more? Quicker than counting all of them: most tasks ask for few.
[[nodiscard]] constexpr bool holds_at_least(GpuMask mask, int count) noexcept {
    for (; count > 1; --count) mask &= mask - 1;
    return count <= 0 || mask != 0;
}

/// The `count` lowest GPUs of `mask`, which must hold at least that many.
[[nodiscard]] constexpr GpuMask lowest_gpus(GpuMask mask, int count) noexcept {
    GpuMask rest = mask;
    for (int i = 0; i < count; ++i) rest &= rest - 1;
    return mask & ~rest;
}

/// Calls `visit(int gpu)` for every GPU of the mask in ascending order.
template <class Visit>
constexpr void for_each_gpu(GpuMask mask, Visit&& visit) {
    for (; mask != 0; mask &= mask - 1) visit(std::countr_zero(mask));
}

}  // namespace gpusched
