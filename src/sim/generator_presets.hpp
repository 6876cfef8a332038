// SPDX-License-Identifier: Apache-2.0
// The kinds of nodes and the task shapes of the generator's presets.
#pragma once

#include <gpusched/core/rng.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace gpusched::sim::detail {

/// A kind of equal nodes: the resources of one, their number at the preset's original size, and the share of
/// their GPUs that is allocated at load 1.
struct NodeKind {
    std::string_view model;
    int gpus;
    std::int64_t cpu_milli;
    std::int64_t memory_mib;
    std::int64_t count;
    double allocated;
};

/// The request of one task.
struct TaskShape {
    int gpu_count = 0;
    int gpu_share_milli = 1000;
    std::int64_t cpu_milli = 0;
    std::int64_t memory_mib = 0;
};

/// Classes of tasks by their GPU request.
enum class TaskClass : std::uint8_t { cpu_only, fraction, one_gpu, several_gpus };
inline constexpr std::size_t task_classes = 4;

[[nodiscard]] constexpr TaskClass class_of(const TaskShape& shape) {
    return shape.gpu_count == 0           ? TaskClass::cpu_only
           : shape.gpu_share_milli < 1000 ? TaskClass::fraction
           : shape.gpu_count == 1         ? TaskClass::one_gpu
                                          : TaskClass::several_gpus;
}

/// Parameters of the generator for one preset.
struct Recipe {
    std::span<const NodeKind> kinds;
    /// Draws the shape of a job's tasks for nodes of one kind.
    TaskShape (*draw)(Rng& rng, const NodeKind& kind, bool cpu_tight);
    /// Makes tasks request the GPU model of the nodes that they were drawn for, and keeps those models apart;
    /// false = any.
    bool by_model;
    /// Target share of each class among the running tasks, in thousandths; all 0 = no targets. Without
    /// targets, a long churn at high load replaces tasks that no longer fit with ever smaller ones.
    std::array<std::int64_t, task_classes> mix;
};

inline constexpr std::int64_t cores = 1000;
inline constexpr std::int64_t gib = 1024;

inline constexpr std::array<NodeKind, 14> asi_kinds{{
    {"H20", 8, 192 * cores, 2000 * gib, 4200, 0.90},
    {"XPU-A", 8, 192 * cores, 2000 * gib, 2300, 0.62},
    {"A100", 8, 128 * cores, 1000 * gib, 2200, 0.88},
    {"H800", 8, 192 * cores, 2000 * gib, 1500, 0.92},
    {"L20", 8, 128 * cores, 1000 * gib, 1400, 0.80},
    {"A800", 8, 128 * cores, 1000 * gib, 1300, 0.86},
    {"V100", 8, 96 * cores, 750 * gib, 900, 0.75},
    {"PPU-B", 8, 96 * cores, 750 * gib, 500, 0.60},
    {"T4", 4, 96 * cores, 384 * gib, 1500, 0.75},
    {"T4", 2, 64 * cores, 256 * gib, 3503, 0.75},
    {"L40S", 4, 96 * cores, 512 * gib, 2200, 0.80},
    {"P100", 2, 64 * cores, 256 * gib, 3000, 0.65},
    {"A10", 1, 128 * cores, 256 * gib, 9204, 0.80},
    {"RTX", 1, 64 * cores, 128 * gib, 4000, 0.70},
}};

inline constexpr std::array<NodeKind, 15> openb_kinds{{
    {"G2", 8, 96 * cores, 384 * gib, 549, 0.93},
    {"T4", 2, 104 * cores, 512 * gib, 387, 0.93},
    {"P100", 2, 16 * cores, 120 * gib, 107, 0.93},
    {"G3", 8, 128 * cores, 768 * gib, 39, 0.93},
    {"V100M16", 4, 32 * cores, 128 * gib, 28, 0.93},
    {"P100", 2, 64 * cores, 256 * gib, 22, 0.93},
    {"V100M32", 8, 96 * cores, 768 * gib, 21, 0.93},
    {"V100M16", 1, 8 * cores, 32 * gib, 19, 0.93},
    {"T4", 4, 96 * cores, 384 * gib, 17, 0.93},
    {"V100M32", 4, 48 * cores, 368 * gib, 9, 0.93},
    {"V100M16", 8, 64 * cores, 256 * gib, 7, 0.93},
    {"P100", 1, 8 * cores, 60 * gib, 3, 0.93},
    {"P100", 2, 8 * cores, 60 * gib, 2, 0.93},
    {"A10", 1, 128 * cores, 1024 * gib, 2, 0.93},
    {"V100M16", 8, 82 * cores, 336 * gib, 1, 0.93},
}};

inline constexpr NodeKind flextopo_kind{"RTX4090", 8, 64 * cores, 512 * gib, 100, 1.0};

template <class T, std::size_t n>
T pick(Rng& rng, const std::array<T, n>& values) {
    return values[static_cast<std::size_t>(rng.below(n))];
}

/// ASI-like: 1 / 2 / 4 / 8 GPUs with 40 / 22 / 16 / 22 %; on smaller nodes a power of two that fits.
inline TaskShape draw_asi_shape(Rng& rng, const NodeKind& kind, bool cpu_tight) {
    static constexpr std::array<std::int64_t, 10> usual{2, 4, 6, 8, 8, 10, 12, 12, 16, 24};
    static constexpr std::array<std::int64_t, 10> tight{8, 8, 12, 12, 16, 16, 20, 24, 24, 32};
    static constexpr std::array<std::int64_t, 5> gib_per_core{4, 6, 8, 8, 10};
    static constexpr std::array<int, 3> fractions{250, 300, 500};

    const auto draw = rng.below(100);
    TaskShape shape;
    shape.gpu_count = draw < 40 ? 1 : draw < 62 ? 2 : draw < 78 ? 4 : 8;
    if (shape.gpu_count > kind.gpus) {
        const auto powers = static_cast<std::uint64_t>(std::bit_width(static_cast<unsigned>(kind.gpus)));
        shape.gpu_count = 1 << rng.below(powers);
    }
    if (shape.gpu_count == 1 && rng.below(100) < 4) shape.gpu_share_milli = pick(rng, fractions);

    // All in thousandths of a GPU, so that a fraction requests its part of all resources.
    const std::int64_t gpu_milli = std::int64_t{shape.gpu_count} * shape.gpu_share_milli;
    const std::int64_t all_milli = std::int64_t{kind.gpus} * 1000;
    const auto capped = [&](std::int64_t wanted, std::int64_t capacity) {
        const auto share = std::min(all_milli, gpu_milli * 3 / 2);
        return std::min(wanted, capacity * share / all_milli * 98 / 100);
    };
    auto per_gpu = pick(rng, cpu_tight ? tight : usual) * cores;
    per_gpu = std::min(per_gpu, kind.cpu_milli * 3 / (2 * kind.gpus));
    if (kind.gpus <= 2) per_gpu = std::min(per_gpu, 16 * cores);
    shape.cpu_milli = capped(per_gpu * gpu_milli / 1000, kind.cpu_milli);
    shape.memory_mib = capped(shape.cpu_milli * pick(rng, gib_per_core) * gib / cores, kind.memory_mib);
    return shape;
}

/// Like the default list of the openb trace: 13 % without GPU, 38 % a fraction, 48 % one GPU, 1 % more.
inline TaskShape draw_openb_shape(Rng& rng, const NodeKind&, bool) {
    static constexpr std::array<std::int64_t, 7> cpu_only{8, 12, 12, 12, 16, 16, 32};
    static constexpr std::array<std::int64_t, 8> with_fraction{3, 3, 3, 4, 4, 8, 12, 12};
    static constexpr std::array<std::int64_t, 10> with_one{3, 4, 8, 11, 11, 11, 12, 14, 18, 24};
    static constexpr std::array<int, 12> fractions{230, 320, 320, 470, 470, 470,
                                                   550, 590, 650, 810, 810, 810};
    static constexpr std::array<std::int64_t, 5> gib_per_core{2, 3, 4, 4, 4};

    const auto draw = rng.below(1000);
    TaskShape shape;
    if (draw < 130) {
        shape.cpu_milli = pick(rng, cpu_only) * cores;
    } else if (draw < 510) {
        shape.gpu_count = 1;
        shape.gpu_share_milli = pick(rng, fractions);
        shape.cpu_milli = pick(rng, with_fraction) * cores;
    } else if (draw < 990) {
        shape.gpu_count = 1;
        shape.cpu_milli = pick(rng, with_one) * cores;
    } else {
        shape.gpu_count = draw < 992 ? 2 : draw < 994 ? 4 : 8;
        shape.cpu_milli = 8 * cores * shape.gpu_count;
    }
    shape.memory_mib = shape.cpu_milli * pick(rng, gib_per_core) * gib / cores;
    return shape;
}

inline constexpr Recipe asi_recipe{asi_kinds, draw_asi_shape, true, {}};
inline constexpr Recipe openb_recipe{openb_kinds, draw_openb_shape, false, {130, 380, 480, 10}};

/// Returns the number of nodes of all kinds in the original.
inline std::int64_t original_size(std::span<const NodeKind> kinds) {
    std::int64_t nodes = 0;
    for (const auto& kind : kinds) nodes += kind.count;
    return nodes;
}

/// Splits `nodes` over the kinds in proportion to their counts: whole parts first, then largest remainders.
inline std::vector<std::int64_t> scale_counts(std::span<const NodeKind> kinds, std::int64_t nodes) {
    const auto original = original_size(kinds);
    std::vector<std::int64_t> counts;
    // Negated, so that ties go to the earlier kind.
    std::vector<std::pair<std::int64_t, std::size_t>> remainders;
    std::int64_t left = nodes;
    for (std::size_t k = 0; k < kinds.size(); ++k) {
        counts.push_back(kinds[k].count * nodes / original);
        left -= counts.back();
        remainders.emplace_back(-(kinds[k].count * nodes % original), k);
    }
    std::sort(remainders.begin(), remainders.end());
    for (std::int64_t i = 0; i < left; ++i) ++counts[remainders[static_cast<std::size_t>(i)].second];
    return counts;
}

}  // namespace gpusched::sim::detail
