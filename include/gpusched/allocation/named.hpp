// Policies by name, for options, files and other languages.
#pragma once

#include <gpusched/allocation/any.hpp>
#include <gpusched/config.hpp>
#include <gpusched/core/registry.hpp>
#include <gpusched/fragmentation/workload.hpp>
#include <gpusched/model/inventory.hpp>

#include <string_view>

namespace GPUSCHED_NAMESPACE::allocation {

/// Made from the inventory of the clusters that they serve, and the workload that is expected to come, which only "fgd" and
/// "expected_fill" look at; it must not be empty for these.
template <class Policy>
using PolicyRegistry = Registry<Policy, const Inventory&, const fragmentation::Workload&>;

/// "packing", "homogeneous", "eviction_history", "least_allocated", "most_allocated", "best_fit", "dot_product",
/// "gpu_packing", "gpu_clustering", "first_fit", "random", "network_wish", "hardware_wish", "fgd", "expected_fill".
///
/// "best_fit", "dot_product" and "gpu_clustering" measure in parts of the inventory's largest node.
[[nodiscard]] const PolicyRegistry<AnyRanker>& rankers();

/// "by_wish", "fewest_crossings", "least_harm", "tightest_gpu", "random", "fgd", "expected_fill".
[[nodiscard]] const PolicyRegistry<AnyGpuPicker>& gpu_pickers();

/// "any", "occupied". A filter for one network domain has no name: see WithinDomain.
[[nodiscard]] const Registry<AnyFilter>& filters();

/// Whole placement policies. The comparison of Weng et al. (ATC '23): "random", "dot_product", "gpu_clustering",
/// "gpu_packing", "best_fit", "fgd"; "asi" (packing, then homogeneous co-location, then eviction history);
/// "first_fit", "least_allocated", "most_allocated", "power_of_d"; and our own "expected_fill" (expected_fill.hpp).
///
/// The published ones measure in parts of 128 cores and 8 GPUs as published, or of the largest node where that is
/// larger.
[[nodiscard]] const PolicyRegistry<AnyPlacement>& placements();

/// True for the rankers, GPU pickers and placements that look at a workload: "fgd" and "expected_fill".
[[nodiscard]] bool expects_workload(std::string_view name) noexcept;

}  // namespace GPUSCHED_NAMESPACE::allocation

#ifdef GPUSCHED_HEADER_ONLY
#include <gpusched/allocation/impl/named.ipp>
#endif
