// SPDX-License-Identifier: Apache-2.0
// place(), with policies chosen by name.
#pragma once

#include <gpusched/allocation/named.hpp>
#include <gpusched/core/fields.hpp>
#include <gpusched/fragmentation/workload.hpp>
#include <gpusched/model/cluster.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace gpusched::allocation {

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
