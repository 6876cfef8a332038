// SPDX-License-Identifier: Apache-2.0
// Choosing a set of GPUs: every set of up to 16 candidates, or one grown GPU by GPU where there are more.
#pragma once

#include <gpusched/core/gpu_mask.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace gpusched {

/// Up to so many candidates all sets are compared: 12,870 at most (8 of 16).
inline constexpr int most_compared_gpus = 16;

/// Calls `visit(GpuMask set)` for every set of `count` (at least 1) GPUs of the mask, which holds at most
/// `most_compared_gpus`, in ascending order.
template <class Visit>
constexpr void for_each_gpu_set(GpuMask mask, int count, Visit&& visit) {
    std::array<GpuMask, most_compared_gpus> bits{};
    std::size_t size = 0;
    for_each_gpu(mask, [&](int gpu) { bits[size++] = gpu_bit(gpu); });
    // Which of them are chosen, as a number with `count` ones.
    for (std::uint32_t ranks = (1u << count) - 1; ranks < (1u << size);) {
        GpuMask set = 0;
        for (auto rest = ranks; rest != 0; rest &= rest - 1)
            set |= bits[static_cast<std::size_t>(std::countr_zero(rest))];
        visit(set);
        const auto low = ranks & (0 - ranks), carried = ranks + low;  // the next number with as many ones
        ranks = carried | (((ranks ^ carried) >> 2) / low);
    }
}

/// Calls `visit(GpuMask set)` for sets of `count` (at least 1) GPUs of the mask: all of them in ascending order where the
/// mask holds at most `most_compared_gpus`. Of a larger mask it visits one set for each of its GPUs, grown from that GPU
/// by whichever next GPU gives the least `key(GpuMask)` (the lowest of equal ones): at most 64 sets and 64^3 keys.
template <class Key, class Visit>
constexpr void for_each_promising_gpu_set(GpuMask mask, int count, Key&& key, Visit&& visit) {
    if (gpu_count(mask) < count) return;
    if (gpu_count(mask) <= most_compared_gpus) return for_each_gpu_set(mask, count, visit);
    for_each_gpu(mask, [&](int first) {
        GpuMask set = gpu_bit(first);
        while (gpu_count(set) < count) {
            const GpuMask rest = mask & ~set;
            GpuMask next = lowest_gpus(rest, 1);
            auto least = key(set | next);
            for_each_gpu(rest & ~next, [&](int gpu) {
                const auto now = key(set | gpu_bit(gpu));
                if (now < least) least = now, next = gpu_bit(gpu);
            });
            set |= next;
        }
        visit(set);
    });
}

}  // namespace gpusched
