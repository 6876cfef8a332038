// SPDX-License-Identifier: Apache-2.0
// Counts empty, partly used and full nodes, and unusable idle GPUs.
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

GPUSCHED_EXPORT FragmentRateMetric::FragmentRateMetric(const FragmentRateOptions& options)
    : options_(options) {
    require_fields(options);
}

GPUSCHED_EXPORT FragmentRate FragmentRateMetric::state(const Cluster& cluster, NodeId node) const noexcept {
    if (!detail::counts(cluster.inventory().nodes, node, options_.include_cordoned)) return {};
    const int whole = gpu_count(cluster.idle_gpus(node));
    const auto idle = cluster.gpu_free_total_milli(node);
    return {idle, whole >= options_.gpus ? idle - std::int64_t{whole_gpu_milli} * whole : idle};
}

GPUSCHED_EXPORT FragmentRate fragment_rate(const Cluster& cluster, const FragmentRateOptions& options) {
    return evaluate(FragmentRateMetric(options), cluster);
}

}  // namespace gpusched::fragmentation
