// SPDX-License-Identifier: Apache-2.0
// The nodes that compete for the same generated tasks, in a compact form for sampling.
#pragma once

#include "sim/generator_presets.hpp"

#include <gpusched/core/gpu_mask.hpp>
#include <gpusched/core/rng.hpp>
#include <gpusched/sim/generator.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace gpusched::sim::detail {

inline constexpr std::uint32_t no_node = std::numeric_limits<std::uint32_t>::max();

/// Free capacity of a set of nodes, with uniform sampling among the nodes that fit a shape.
///
/// The data for this test is stored in scan order, so that a scan of all nodes reads one array from end to
/// end. Scans are rare: they follow many failed draws.
class NodePool {
  public:
    void add(const NodeSpec& spec) {
        const auto gpus = static_cast<std::size_t>(spec.gpu_count);
        Gpus node;
        node.idle = first_gpus(static_cast<int>(gpus));
        std::fill_n(node.free_milli.begin(), gpus, std::int16_t{1000});
        rooms_.push_back(
            {spec.cpu_milli, spec.memory_mib, size(), largest_free(node), static_cast<std::int16_t>(gpus)});
        gpus_.push_back(node);
    }

    /// Builds the index. Call once after the last `add`.
    void index() {
        std::sort(rooms_.begin(), rooms_.end(), [](const Room& a, const Room& b) {
            return a.idle_gpus != b.idle_gpus ? a.idle_gpus > b.idle_gpus : a.node < b.node;
        });
        rank_.resize(rooms_.size());
        for (std::uint32_t rank = 0; rank < rooms_.size(); ++rank) rank_[rooms_[rank].node] = rank;
        at_least_.fill(0);
        for (const auto& room : rooms_)
            for (int g = 0; g <= room.idle_gpus; ++g) ++at_least_[static_cast<std::size_t>(g)];
    }

    [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(gpus_.size()); }
    [[nodiscard]] GpuMask idle_mask(std::uint32_t node) const { return gpus_[node].idle; }

    /// Returns a node for the shape, chosen by the layout's rule among feasible nodes not in `excluded`;
    /// `no_node` if none.
    std::uint32_t choose(const TaskShape& shape, Layout layout, std::span<const std::uint32_t> excluded,
                         Rng& rng) {
        const auto usable = [&](const Room& room) {
            return fits(shape, room) &&
                   std::find(excluded.begin(), excluded.end(), room.node) == excluded.end();
        };
        // The nodes with enough idle GPUs come first. A fraction may also go to a used GPU.
        const auto pool = std::span(rooms_).first(
            at_least_[shape.gpu_share_milli < 1000 ? 0 : static_cast<std::size_t>(shape.gpu_count)]);
        if (pool.empty()) return no_node;
        const int samples = layout == Layout::random ? 1 : 30;
        const Room* best = nullptr;
        int found = 0;
        const auto consider = [&](const Room& room) {
            ++found;
            if (best == nullptr || (layout == Layout::spread && room.idle_gpus > best->idle_gpus) ||
                (layout == Layout::packed && room.idle_gpus < best->idle_gpus))
                best = &room;
        };
        for (int draws = 0; draws < 10 * samples && found < samples; ++draws)
            if (const auto& room = rng.pick(pool); usable(room)) consider(room);
        if (best != nullptr) return best->node;
        // Feasible nodes are rare: find them all.
        feasible_.clear();
        for (std::uint32_t rank = 0; rank < pool.size(); ++rank)
            if (usable(pool[rank])) feasible_.push_back(rank);
        if (feasible_.empty()) return no_node;
        while (found < samples) consider(pool[rng.pick(std::span(feasible_))]);
        return best->node;
    }

    /// Returns the GPUs that the shape takes by default: the lowest idle ones, or the tightest GPU for a
    /// fraction.
    [[nodiscard]] GpuMask default_gpus(const TaskShape& shape, std::uint32_t node) const {
        const auto& n = gpus_[node];
        if (shape.gpu_share_milli == 1000) return lowest_gpus(n.idle, shape.gpu_count);
        int best = -1;
        for (int g = 0; g < static_cast<int>(n.free_milli.size()); ++g) {
            const auto free = n.free_milli[static_cast<std::size_t>(g)];
            if (free >= shape.gpu_share_milli &&
                (best < 0 || free < n.free_milli[static_cast<std::size_t>(best)]))
                best = g;
        }
        return gpu_bit(best);
    }

    void take(const TaskShape& shape, std::uint32_t node, GpuMask gpus) { change(shape, node, gpus, -1); }
    void give_back(const TaskShape& shape, std::uint32_t node, GpuMask gpus) {
        change(shape, node, gpus, +1);
    }

  private:
    static constexpr std::size_t most_gpus = 32;  // of any preset's nodes, including large ones
    struct Gpus {
        std::array<std::int16_t, most_gpus> free_milli{};
        GpuMask idle = 0;
    };
    struct Room {
        std::int64_t cpu_milli, memory_mib;
        std::uint32_t node;
        std::int16_t gpu_milli;  // largest free part of one GPU
        std::int16_t idle_gpus;
    };

    static std::int16_t largest_free(const Gpus& gpus) {
        return *std::max_element(gpus.free_milli.begin(), gpus.free_milli.end());
    }
    static bool fits(const TaskShape& shape, const Room& room) {
        return shape.cpu_milli <= room.cpu_milli && shape.memory_mib <= room.memory_mib &&
               (shape.gpu_share_milli == 1000 ? shape.gpu_count <= room.idle_gpus
                                              : shape.gpu_share_milli <= room.gpu_milli);
    }

    void change(const TaskShape& shape, std::uint32_t node, GpuMask gpus, int sign) {
        auto& n = gpus_[node];
        for_each_gpu(gpus, [&](int g) {
            auto& free = n.free_milli[static_cast<std::size_t>(g)];
            free = static_cast<std::int16_t>(free + sign * shape.gpu_share_milli);
            n.idle = static_cast<GpuMask>(free == 1000 ? n.idle | gpu_bit(g) : n.idle & ~gpu_bit(g));
        });
        auto& room = rooms_[rank_[node]];
        room.cpu_milli += sign * shape.cpu_milli;
        room.memory_mib += sign * shape.memory_mib;
        room.gpu_milli = largest_free(n);
        const int before = std::exchange(room.idle_gpus, static_cast<std::int16_t>(gpu_count(n.idle)));
        // Keep the order: cross one boundary between idle counts at a time.
        const int after = gpu_count(n.idle);
        for (int idle = before; idle > after; --idle)
            swap_places(rank_[node], --at_least_[static_cast<std::size_t>(idle)]);
        for (int idle = before + 1; idle <= after; ++idle)
            swap_places(rank_[node], at_least_[static_cast<std::size_t>(idle)]++);
    }

    void swap_places(std::uint32_t a, std::uint32_t b) {
        std::swap(rooms_[a], rooms_[b]);
        rank_[rooms_[a].node] = a;
        rank_[rooms_[b].node] = b;
    }

    std::vector<Gpus> gpus_;                               // by node
    std::vector<Room> rooms_;                              // by falling number of idle GPUs
    std::vector<std::uint32_t> rank_;                      // by node: its index in rooms_
    std::array<std::uint32_t, most_gpus + 1> at_least_{};  // nodes with at least that many idle GPUs
    std::vector<std::uint32_t> feasible_;                  // scratch: ranks
};

}  // namespace gpusched::sim::detail
