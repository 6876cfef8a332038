// A set of GPUs on one node, as a bit mask (GPU i is bit i; a node has at most 16).
#pragma once

#include <gpusched/config.hpp>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace GPUSCHED_NAMESPACE {

/// Most GPUs a node may have.
inline constexpr int max_gpus_per_node = 16;

/// One whole GPU in thousandths; fractions are 1 .. 999.
inline constexpr int whole_gpu_milli = 1000;

/// A set of GPU indices of one node.
using GpuMask = std::uint16_t;

/// The mask holding GPU `gpu` alone.
[[nodiscard]] constexpr GpuMask gpu_bit(int gpu) noexcept { return static_cast<GpuMask>(1u << gpu); }

/// The mask of GPUs 0 .. count - 1.
[[nodiscard]] constexpr GpuMask first_gpus(int count) noexcept {
    return static_cast<GpuMask>((1u << count) - 1u);
}

/// How many GPUs the mask holds.
[[nodiscard]] constexpr int gpu_count(GpuMask mask) noexcept { return std::popcount(mask); }

/// The `count` lowest GPUs of `mask`, which must hold at least that many.
[[nodiscard]] constexpr GpuMask lowest_gpus(GpuMask mask, int count) noexcept {
    unsigned rest = mask;
    for (int i = 0; i < count; ++i) rest &= rest - 1;
    return static_cast<GpuMask>(mask & ~rest);
}

/// Calls `visit(int gpu)` for every GPU of the mask in ascending order.
template <class Visit>
constexpr void for_each_gpu(GpuMask mask, Visit&& visit) {
    for (unsigned rest = mask; rest != 0; rest &= rest - 1) visit(std::countr_zero(rest));
}

/// Calls `visit(GpuMask set)` for every set of `count` (at least 1) GPUs of the mask, in ascending order.
template <class Visit>
constexpr void for_each_gpu_set(GpuMask mask, int count, Visit&& visit) {
    std::array<GpuMask, max_gpus_per_node> bits{};
    std::size_t size = 0;
    for_each_gpu(mask, [&](int gpu) { bits[size++] = gpu_bit(gpu); });
    // Which of them are chosen, as a number with `count` ones.
    for (std::uint32_t ranks = (1u << count) - 1; ranks < (1u << size);) {
        GpuMask set = 0;
        for (auto rest = ranks; rest != 0; rest &= rest - 1)
            set = static_cast<GpuMask>(set | bits[static_cast<std::size_t>(std::countr_zero(rest))]);
        visit(set);
        const auto low = ranks & (0 - ranks), carried = ranks + low;  // the next number with as many ones
        ranks = carried | (((ranks ^ carried) >> 2) / low);
    }
}

}  // namespace GPUSCHED_NAMESPACE
