// SPDX-License-Identifier: Apache-2.0
// GpuMask: a set of GPUs of one node as a bit mask, its list of indices, and the choice of subsets.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

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

/// How many GPUs the mask holds. Without a processor flag std::popcount is a call; nodes of up to 8 GPUs get
/// by without it.
[[nodiscard, gnu::always_inline]] constexpr int gpu_count(GpuMask mask) noexcept {
    return mask < detail::bits_of_byte.size() ? detail::bits_of_byte[mask] : std::popcount(mask);
}

/// Does the mask hold at least `count` GPUs? Faster than counting all of them, because most tasks need few.
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

/// The GPUs of the mask, ascending.
[[nodiscard]] inline std::vector<int> gpu_list(GpuMask mask) {
    std::vector<int> list;
    for_each_gpu(mask, [&](int gpu) { list.push_back(gpu); });
    return list;
}

/// The mask of the listed GPUs of a node with `count` GPUs. Wrong entries are skipped and reported:
/// `lacking(gpu)` for an index outside 0 .. count - 1, `repeated(gpu)` for an index that is listed twice.
template <class Lacking, class Repeated>
[[nodiscard]] GpuMask gpu_mask(std::span<const int> list, int count, Lacking&& lacking, Repeated&& repeated) {
    GpuMask mask = 0;
    for (const int gpu : list) {
        if (gpu < 0 || gpu >= count)
            lacking(gpu);
        else if ((mask & gpu_bit(gpu)) != 0)
            repeated(gpu);
        else
            mask = static_cast<GpuMask>(mask | gpu_bit(gpu));
    }
    return mask;
}

/// Largest number of candidates of which all sets are compared: at most 12,870 sets (8 of 16).
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

/// Calls `visit(GpuMask set)` for sets of `count` (at least 1) GPUs of the mask. If the mask holds at most
/// `most_compared_gpus`, it visits all sets in ascending order. Otherwise it visits one set per GPU of the
/// mask: the set grows from that GPU by the GPU with the least `key(GpuMask)`, the lowest of equal ones. That
/// is at most 64 sets and 64^3 keys.
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
