// SPDX-License-Identifier: Apache-2.0
// The order of nodes for a task that evicts nobody, by the policies of spot tasks.
#pragma once

#include <gpusched/allocation/rankers/eviction_history.hpp>
#include <gpusched/allocation/rankers/homogeneous.hpp>
#include <gpusched/allocation/rankers/packing.hpp>
#include <gpusched/model/cluster.hpp>

#include <array>
#include <cstdint>

namespace gpusched::preemption::detail {

/// ASI's three criteria, the first that differs counts, more is better (section 4.2 of the ASI paper).
/// @param borrows is it a spot task that is to be placed?
[[nodiscard]] inline std::array<std::int64_t, 3> spot_rank(const Cluster& cluster, bool borrows,
                                                           NodeId node) noexcept {
    return {allocation::Packing::rank(cluster, borrows ? Lent::yes : Lent::no, node),
            allocation::Homogeneous::rank(cluster, borrows, node),
            allocation::EvictionHistory::rank(cluster, borrows, node)};
}

}  // namespace gpusched::preemption::detail
