// SPDX-License-Identifier: Apache-2.0
// Counts empty, partly used and full nodes.
#include <gpusched/config.hpp>
#include <gpusched/fragmentation/detail/node_groups.hpp>
#include <gpusched/fragmentation/incremental.hpp>
#include <gpusched/fragmentation/occupancy.hpp>

namespace gpusched::fragmentation {

GPUSCHED_EXPORT Occupancy OccupancyMetric::state(const Cluster& cluster, NodeId node) const noexcept {
    if (!detail::counts(cluster.inventory().nodes, node, options_.include_cordoned)) return {};
    if (cluster.occupants(node) == 0) return {.empty = 1};
    if (cluster.idle_gpus(node) != 0) return {.not_fully_occupied = 1};
    return {.fully_occupied = 1};
}

GPUSCHED_EXPORT void OccupancyMetric::add(Total& total, NodeId, const State& state, int sign) noexcept {
    total.empty += sign * state.empty;
    total.not_fully_occupied += sign * state.not_fully_occupied;
    total.fully_occupied += sign * state.fully_occupied;
}

GPUSCHED_EXPORT Occupancy occupancy(const Cluster& cluster, const OccupancyOptions& options) {
    return evaluate(OccupancyMetric(options), cluster);
}

}  // namespace gpusched::fragmentation
