// Policies by name, for options, files and other languages.
#pragma once

#include <gpusched/allocation/any.hpp>
#include <gpusched/config.hpp>
#include <gpusched/fragmentation/workload.hpp>
#include <gpusched/model/inventory.hpp>

#include <span>
#include <string_view>

namespace gpusched::allocation {

/// "packing", "homogeneous", "eviction_history", "least_allocated", "most_allocated", "best_fit", "dot_product",
/// "gpu_packing", "gpu_clustering", "first_fit", "random", "network_wish", "hardware_wish", "fgd", "expected_fill".
[[nodiscard]] std::span<const std::string_view> ranker_names() noexcept;

/// The ranker of that name. "best_fit", "dot_product" and "gpu_clustering" measure in parts of the inventory's largest
/// node.
/// @param workload what "fgd" and "expected_fill" expect to come; not looked at by the others
/// @throws InvalidInput for an unknown name; with those two, for an empty workload
[[nodiscard]] AnyRanker make_ranker(std::string_view name, const Inventory& inventory,
                                    const fragmentation::Workload& workload);

/// "by_wish", "fewest_crossings", "least_harm", "tightest_gpu", "random", "fgd", "expected_fill".
[[nodiscard]] std::span<const std::string_view> gpu_picker_names() noexcept;

/// The GPU picker of that name.
/// @param workload what "fgd" and "expected_fill" expect to come; not looked at by the others
/// @throws InvalidInput for an unknown name; with those two, for an empty workload
[[nodiscard]] AnyGpuPicker make_gpu_picker(std::string_view name, const Inventory& inventory,
                                           const fragmentation::Workload& workload);

/// "any", "occupied". A filter for one network domain has no name: see WithinDomain.
[[nodiscard]] std::span<const std::string_view> filter_names() noexcept;

/// The node filter of that name.
/// @throws InvalidInput for an unknown name
[[nodiscard]] AnyFilter make_filter(std::string_view name);

/// True for the rankers, GPU pickers and placements that look at a workload: "fgd" and "expected_fill".
[[nodiscard]] bool expects_workload(std::string_view name) noexcept;

/// Whole placement policies. The comparison of Weng et al. (ATC '23): "random", "dot_product", "gpu_clustering",
/// "gpu_packing", "best_fit", "fgd"; "asi" (packing, then homogeneous co-location, then eviction history);
/// "first_fit", "least_allocated", "most_allocated", "power_of_d"; and our own "expected_fill" (expected_fill.hpp).
///
/// The published ones measure in parts of 128 cores and 8 GPUs as published, or of the largest node where that is
/// larger.
[[nodiscard]] std::span<const std::string_view> placement_names() noexcept;

/// The placement policy of that name, for tasks of a cluster with that inventory.
/// @param workload what "fgd" and "expected_fill" expect to come; not looked at by the others
/// @throws InvalidInput for an unknown name; with those two, for an empty workload
[[nodiscard]] AnyPlacement make_placement(std::string_view name, const Inventory& inventory,
                                          const fragmentation::Workload& workload);

}  // namespace gpusched::allocation

#ifdef GPUSCHED_HEADER_ONLY
#include <gpusched/allocation/impl/named.ipp>
#endif
