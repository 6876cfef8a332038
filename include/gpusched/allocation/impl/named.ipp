#pragma once

#include <gpusched/allocation/gpu_pickers.hpp>
#include <gpusched/allocation/named.hpp>
#include <gpusched/allocation/power_of_d.hpp>
#include <gpusched/allocation/ranked_placement.hpp>
#include <gpusched/allocation/rankers/rankers.hpp>
#include <gpusched/core/errors.hpp>
#include <gpusched/core/nearest_names.hpp>

#include <algorithm>
#include <array>
#include <memory>
#include <string>

namespace gpusched::allocation {
namespace detail {

inline constexpr std::array<std::string_view, 15> all_rankers{
    "packing",       "homogeneous", "eviction_history", "least_allocated", "most_allocated", "best_fit",
    "dot_product",   "gpu_packing", "gpu_clustering",   "first_fit",       "random",         "network_wish",
    "hardware_wish", "fgd",         "expected_fill"};
inline constexpr std::array<std::string_view, 7> all_gpu_pickers{
    "by_wish", "fewest_crossings", "least_harm", "tightest_gpu", "random", "fgd", "expected_fill"};
inline constexpr std::array<std::string_view, 2> all_filters{"any", "occupied"};
inline constexpr std::array<std::string_view, 12> all_placements{
    "random", "first_fit", "best_fit",    "least_allocated", "most_allocated", "dot_product",
    "fgd",    "asi",       "gpu_packing", "gpu_clustering",  "power_of_d",     "expected_fill"};

[[noreturn]] inline void unknown_name(const char* field, std::string_view name,
                                      std::span<const std::string_view> known) {
    throw InvalidInput(bad_name(field, name, known));
}

inline std::shared_ptr<const fragmentation::Fgd> share_fgd(const Inventory& inventory,
                                                           const fragmentation::Workload& workload) {
    return std::make_shared<const fragmentation::Fgd>(workload, inventory);
}

inline LargestNode published_scale(const Inventory& inventory) noexcept {
    const auto largest = largest_node(inventory);
    const LargestNode published;
    return {std::max(published.cpu_milli, largest.cpu_milli),
            std::max(published.gpu_milli, largest.gpu_milli)};
}

}  // namespace detail

GPUSCHED_INLINE std::span<const std::string_view> ranker_names() noexcept { return detail::all_rankers; }
GPUSCHED_INLINE std::span<const std::string_view> gpu_picker_names() noexcept {
    return detail::all_gpu_pickers;
}
GPUSCHED_INLINE std::span<const std::string_view> filter_names() noexcept { return detail::all_filters; }
GPUSCHED_INLINE std::span<const std::string_view> placement_names() noexcept {
    return detail::all_placements;
}

GPUSCHED_INLINE AnyRanker make_ranker(std::string_view name, const Inventory& inventory,
                                      const fragmentation::Workload& workload) {
    if (name == "packing") return Packing{};
    if (name == "homogeneous") return Homogeneous{};
    if (name == "eviction_history") return EvictionHistory{};
    if (name == "least_allocated") return LeastAllocated{};
    if (name == "most_allocated") return MostAllocated{};
    if (name == "best_fit") return BestFit{largest_node(inventory)};
    if (name == "dot_product") return DotProduct{largest_node(inventory)};
    if (name == "gpu_packing") return GpuPacking{};
    if (name == "gpu_clustering") return GpuClustering{largest_node(inventory).gpu_milli};
    if (name == "first_fit") return FirstFit{};
    if (name == "random") return Random{};
    if (name == "network_wish") return NetworkWish{};
    if (name == "hardware_wish") return HardwareWish{};
    if (name == "fgd") return LeastFragmentation{detail::share_fgd(inventory, workload)};
    if (name == "expected_fill")
        return LeastFillLoss{std::make_shared<const fragmentation::ExpectedFill>(workload, inventory)};
    detail::unknown_name("ranker", name, ranker_names());
}

GPUSCHED_INLINE AnyGpuPicker make_gpu_picker(std::string_view name, const Inventory& inventory,
                                             const fragmentation::Workload& workload) {
    if (name == "by_wish") return ByWish{};
    if (name == "fewest_crossings") return FewestCrossings{};
    if (name == "least_harm") return LeastHarm{};
    if (name == "tightest_gpu") return TightestGpu{};
    if (name == "random") return RandomGpus{};
    if (name == "fgd") return FgdGpus{detail::share_fgd(inventory, workload)};
    if (name == "expected_fill")
        return LeastFillLossGpus{std::make_shared<const fragmentation::ExpectedFill>(workload, inventory)};
    detail::unknown_name("gpu_picker", name, gpu_picker_names());
}

GPUSCHED_INLINE AnyFilter make_filter(std::string_view name) {
    if (name == "any") return AnyNode{};
    if (name == "occupied") return OccupiedNodes{};
    detail::unknown_name("filter", name, filter_names());
}

GPUSCHED_INLINE bool expects_workload(std::string_view name) noexcept {
    return name == "fgd" || name == "expected_fill";
}

GPUSCHED_INLINE AnyPlacement make_placement(std::string_view name, const Inventory& inventory,
                                            const fragmentation::Workload& workload) {
    if (name == "random") return RankedPlacement<Random, RandomGpus>{};
    if (name == "first_fit") return RankedPlacement<FirstFit, TightestGpu>{};
    if (name == "best_fit")
        return RankedPlacement(BestFit{detail::published_scale(inventory)}, TightestGpu{});
    if (name == "least_allocated") return RankedPlacement<LeastAllocated, TightestGpu>{};
    if (name == "most_allocated") return RankedPlacement<MostAllocated, TightestGpu>{};
    if (name == "dot_product")
        return RankedPlacement(DotProduct{detail::published_scale(inventory)}, TightestGpu{});
    if (name == "gpu_packing") return RankedPlacement<GpuPacking, TightestGpu>{};
    if (name == "gpu_clustering") {
        const GpuClustering ranker{detail::published_scale(inventory).gpu_milli};
        return RankedPlacement(ranker, TightestGpu{});
    }
    if (name == "power_of_d") return PowerOfD<>{};
    if (name == "asi") {
        const Lexicographic ranker(Packing{}, Homogeneous{}, EvictionHistory{});
        return RankedPlacement(ranker, FewestCrossings{});
    }
    if (name == "fgd") {
        auto metric = detail::share_fgd(inventory, workload);
        return RankedPlacement(LeastFragmentation{metric}, FgdGpus{metric});
    }
    if (name == "expected_fill") {
        auto measure = std::make_shared<const fragmentation::ExpectedFill>(workload, inventory);
        return RankedPlacement(LeastFillLoss{measure}, LeastFillLossGpus{measure});
    }
    detail::unknown_name("placement", name, placement_names());
}

}  // namespace gpusched::allocation
