// SPDX-License-Identifier: Apache-2.0
// Policies by name, for options, files and other languages; place() with such policies.
#pragma once

#include <gpusched/allocation/any.hpp>
#include <gpusched/core/fields.hpp>
#include <gpusched/core/registry.hpp>
#include <gpusched/fragmentation/workload.hpp>
#include <gpusched/model/cluster.hpp>
#include <gpusched/model/inventory.hpp>

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace gpusched::allocation {

/// Makes policies by name. A factory takes the inventory of the cluster; it may also take the expected
/// workload, which must then not be empty:
///
///     auto rankers = allocation::rankers();
///     rankers.add<Mine>("mine");
///     rankers.add("mine_by_3", Mine{3});
///     rankers.add("largest", [](const Inventory& inventory) { return Largest{largest_node(inventory)}; });
///     rankers.add("expecting", [](const Inventory&, const fragmentation::Workload& expected) {
///         return Expecting{expected};
///     });
///
/// A factory with a workload may set the options with which the workload is made from tasks.
template <class Policy>
class PolicyRegistry : public Registry<Policy, const Inventory&, const fragmentation::Workload&> {
    using Base = Registry<Policy, const Inventory&, const fragmentation::Workload&>;

  public:
    using Base::Base;

    /// @throws InvalidInput for an empty name, and for one that is taken
    template <class P>
    PolicyRegistry& add(std::string name) {
        Base::template add<P>(std::move(name));
        return *this;
    }
    template <std::invocable<const Inventory&> Make>
    PolicyRegistry& add(std::string name, Make make) {
        Base::add(std::move(name),
                  [make = std::move(make)](const Inventory& inventory, const fragmentation::Workload&) {
                      return make(inventory);
                  });
        return *this;
    }
    template <std::invocable<const Inventory&, const fragmentation::Workload&> Make>
        requires(!std::invocable<Make, const Inventory&>)
    PolicyRegistry& add(std::string name, Make make, fragmentation::WorkloadOptions of_tasks = {}) {
        Base::add(name, std::move(make));
        expecting_.emplace(std::move(name), of_tasks);
        return *this;
    }

    /// Adds this policy; each use of the name gets a copy.
    template <class P>
        requires(!std::invocable<P&, const Inventory&> &&
                 !std::invocable<P&, const Inventory&, const fragmentation::Workload&>)
    PolicyRegistry& add(std::string name, P policy) {
        Base::add(std::move(name), std::move(policy));
        return *this;
    }

    /// Returns whether policies of that name use the workload; false for an unknown name.
    [[nodiscard]] bool expects_workload(std::string_view name) const { return expecting_.contains(name); }
    /// Returns the options with which the policy's workload is made; the defaults if it uses none.
    [[nodiscard]] fragmentation::WorkloadOptions workload_options(std::string_view name) const {
        const auto found = expecting_.find(name);
        return found == expecting_.end() ? fragmentation::WorkloadOptions{} : found->second;
    }

  private:
    std::map<std::string, fragmentation::WorkloadOptions, std::less<>> expecting_;
};

/// "packing", "homogeneous", "eviction_history", "interference", "least_allocated", "most_allocated",
/// "best_fit", "dot_product", "gpu_packing", "gpu_clustering", "first_fit", "random", "network_wish",
/// "hardware_wish", "fgd", "expected_fill".
///
/// "interference" has the published slowdown.
/// "best_fit", "dot_product" and "gpu_clustering" measure in parts of the inventory's largest node.
[[nodiscard]] const PolicyRegistry<AnyRanker>& rankers();

/// "by_wish", "fewest_crossings", "least_harm", "tightest_gpu", "random", "offline_limit" (a quarter of a
/// GPU), "fgd", "expected_fill".
[[nodiscard]] const PolicyRegistry<AnyGpuPicker>& gpu_pickers();

/// "any", "occupied", "co_location_limit" (half of the cores), "offline_limit" (a quarter of a GPU). A filter
/// for one network domain has no name: see WithinDomain.
[[nodiscard]] const Registry<AnyFilter>& filters();

/// Complete placement policies. The comparison of Weng et al. (ATC '23): "random", "dot_product",
/// "gpu_clustering", "gpu_packing", "best_fit", "fgd". ASI: "asi" (packing, then homogeneous co-location,
/// then eviction history). Others: "first_fit", "least_allocated", "most_allocated", "power_of_d". Not
/// published elsewhere: "expected_fill" (expected_fill.hpp).
///
/// The published ones measure in parts of 128 cores and 8 GPUs as published, or of the largest node if that
/// is larger.
[[nodiscard]] const PolicyRegistry<AnyPlacement>& placements();

/// The policies that can be used by name: those of the library, and any that a caller adds to a copy.
///
///     auto known = allocation::registries();
///     known.rankers.add<Mine>("mine");
///     auto found = allocation::place(cluster, task, {.rankers = {"mine"}}, known);
struct Registries {
    PolicyRegistry<AnyRanker> rankers = allocation::rankers();
    Registry<AnyFilter> filters = allocation::filters();
    PolicyRegistry<AnyGpuPicker> gpu_pickers = allocation::gpu_pickers();
    PolicyRegistry<AnyPlacement> placements = allocation::placements();
};
/// Returns the library's own policies.
[[nodiscard]] const Registries& registries();

/// Policies for placing one task, by name.
struct PlaceOptions {
    /// Each breaks the ties that those before it leave; at least one. Names: see `rankers()`. The default is
    /// ASI's non-preemptive scheduling.
    std::vector<std::string> rankers{"packing", "homogeneous", "eviction_history"};
    /// The node must pass all of them. Names: see `filters()`.
    std::vector<std::string> filters{};
    /// Chooses the GPUs of the node. Names: see `gpu_pickers()`.
    std::string gpu_picker = "by_wish";
    std::uint64_t seed = 0;  ///< for "random"
    /// The tasks that are expected to come, for policies that use them, such as "fgd" and "expected_fill".
    /// Absent = tasks like the cluster's own, which costs O(tasks) each time.
    std::optional<fragmentation::Workload> workload{};
};
template <class F>
constexpr void visit_fields(std::type_identity<PlaceOptions>, F&& field) {
    field("rankers", &PlaceOptions::rankers);
    field("filters", &PlaceOptions::filters);
    field("gpu_picker", &PlaceOptions::gpu_picker);
    field("seed", &PlaceOptions::seed);
}

/// Calls `place` with policies chosen by name.
/// @param known the policies that have names
/// @throws InvalidInput for a task that the cluster does not have or that runs already, an unknown name, an
///     empty list of rankers; with "fgd" or "expected_fill", for a workload that is empty or out of range
[[nodiscard]] std::optional<Destination> place(const Cluster& cluster, TaskId task,
                                               const PlaceOptions& options = {},
                                               const Registries& known = registries());

}  // namespace gpusched::allocation
