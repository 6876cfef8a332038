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
/// "gpu_packing", "gpu_clustering", "first_fit", "random", "fgd", "expected_fill".
[[nodiscard]] std::span<const std::string_view> ranker_names() noexcept;

/// The ranker of that name.
/// @param workload what "fgd" and "expected_fill" expect to come; not looked at by the others
/// @throws InvalidInput for an unknown name; with those two, for an empty workload
[[nodiscard]] AnyRanker make_ranker(std::string_view name, const Inventory& inventory,
                                    const fragmentation::Workload& workload);

/// Whole placement policies. The comparison of Weng et al. (ATC '23): "random", "dot_product", "gpu_clustering",
/// "gpu_packing", "best_fit", "fgd"; "asi" (packing, then homogeneous co-location, then eviction history);
/// "first_fit", "least_allocated", "most_allocated", "power_of_d"; and our own "expected_fill" (expected_fill.hpp).
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
