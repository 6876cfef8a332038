// SPDX-License-Identifier: Apache-2.0
// The published allocation of six policies on four lists of the openb trace: Weng et al. (ATC '23), as
// printed by their released experiment. Values are percent of all GPUs when the demand passes 100 % and at
// 130 %, means of 10 runs.
#pragma once

#include <array>
#include <optional>
#include <string_view>

struct PublishedCell {
    std::string_view list, placement;
    double at_100, at_130;
};

inline constexpr std::array<PublishedCell, 24> published_allocation{{
    {"default", "random", 86.30, 87.47},
    {"default", "dot_product", 90.62, 90.85},
    {"default", "gpu_clustering", 91.65, 91.88},
    {"default", "gpu_packing", 91.78, 92.00},
    {"default", "best_fit", 92.86, 93.08},
    {"default", "fgd", 95.23, 95.39},
    {"cpu250", "random", 80.00, 80.41},
    {"cpu250", "dot_product", 83.57, 83.81},
    {"cpu250", "gpu_clustering", 87.75, 87.99},
    {"cpu250", "gpu_packing", 88.05, 88.28},
    {"cpu250", "best_fit", 91.21, 91.45},
    {"cpu250", "fgd", 93.20, 93.41},
    {"gpushare100", "random", 78.90, 79.44},
    {"gpushare100", "dot_product", 81.98, 82.42},
    {"gpushare100", "gpu_clustering", 82.22, 82.65},
    {"gpushare100", "gpu_packing", 82.13, 82.57},
    {"gpushare100", "best_fit", 84.62, 85.01},
    {"gpushare100", "fgd", 86.64, 86.90},
    {"multigpu50", "random", 81.28, 90.28},
    {"multigpu50", "dot_product", 94.73, 94.85},
    {"multigpu50", "gpu_clustering", 95.69, 95.81},
    {"multigpu50", "gpu_packing", 96.06, 96.18},
    {"multigpu50", "best_fit", 95.62, 95.74},
    {"multigpu50", "fgd", 97.09, 97.18},
}};

/// FGD's metric in percent of all GPUs, at the same demands.
inline constexpr std::array<PublishedCell, 6> published_fragmentation{{
    {"default", "random", 13.49, 12.43},
    {"default", "dot_product", 9.30, 9.08},
    {"default", "gpu_clustering", 8.21, 8.00},
    {"default", "gpu_packing", 8.13, 7.91},
    {"default", "best_fit", 7.05, 6.85},
    {"default", "fgd", 4.73, 4.57},
}};

template <class Table>
[[nodiscard]] constexpr std::optional<PublishedCell> find_published(const Table& table, std::string_view list,
                                                                    std::string_view placement) {
    for (const auto& cell : table)
        if (cell.list == list && cell.placement == placement) return cell;
    return std::nullopt;
}
