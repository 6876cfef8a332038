// SPDX-License-Identifier: Apache-2.0
// Occupancy and FragmentRate: empty, partly used and full nodes, and the idle GPUs that a request of k GPUs
// cannot use.
#pragma once

#include <gpusched/core/fields.hpp>
#include <gpusched/fragmentation/detail/node_groups.hpp>
#include <gpusched/fragmentation/incremental.hpp>
#include <gpusched/model/cluster.hpp>

#include <cstdint>
#include <type_traits>

namespace gpusched::fragmentation {

/// Options of occupancy().
struct OccupancyOptions {
    bool include_cordoned = false;  ///< count cordoned nodes, too
};
template <class F>
constexpr void visit_fields(std::type_identity<OccupancyOptions>, F&& field) {
    field("include_cordoned", &OccupancyOptions::include_cordoned);
}

/// Numbers of nodes with GPUs, by the tasks that run on them. Daemons do not make a node occupied.
struct Occupancy {
    std::int64_t empty = 0;               ///< no task
    std::int64_t not_fully_occupied = 0;  ///< at least one task and at least one fully idle GPU
    std::int64_t fully_occupied = 0;      ///< at least one task and no fully idle GPU
    bool operator==(const Occupancy&) const = default;

    [[nodiscard]] std::int64_t nodes() const noexcept { return empty + not_fully_occupied + fully_occupied; }
};
template <class F>
constexpr void visit_fields(std::type_identity<Occupancy>, F&& field) {
    field("empty", &Occupancy::empty);
    field("not_fully_occupied", &Occupancy::not_fully_occupied);
    field("fully_occupied", &Occupancy::fully_occupied);
}

/// Occupancy as a node metric for `Incremental`. O(1) per changed node.
class OccupancyMetric : public SumOfFields<Occupancy> {
  public:
    explicit OccupancyMetric(const OccupancyOptions& options = {}) : options_(options) {}

    [[nodiscard]] Occupancy state(const Cluster& cluster, NodeId node) const noexcept {
        if (!detail::counts(cluster.inventory().nodes, node, options_.include_cordoned)) return {};
        if (cluster.occupants(node) == 0) return {.empty = 1};
        if (cluster.idle_gpus(node) != 0) return {.not_fully_occupied = 1};
        return {.fully_occupied = 1};
    }

  private:
    OccupancyOptions options_;
};

/// Counts empty, not fully occupied and fully occupied nodes. Consolidation in the ASI paper (section 4.1)
/// reduces the second number. Failed GPUs, Standby claims and cordoned nodes are not idle. O(nodes).
[[nodiscard]] inline Occupancy occupancy(const Cluster& cluster, const OccupancyOptions& options = {}) {
    return evaluate(OccupancyMetric(options), cluster);
}

/// Options of fragment_rate().
struct FragmentRateOptions {
    int gpus = 8;                   ///< k: whole GPUs of one node that the request needs, 1 to 64
    bool include_cordoned = false;  ///< count GPUs of cordoned nodes as idle, too
};
template <class F>
constexpr void visit_fields(std::type_identity<FragmentRateOptions>, F&& field) {
    field("gpus", &FragmentRateOptions::gpus, within(1, gpusched::max_gpus_per_node));
    field("include_cordoned", &FragmentRateOptions::include_cordoned);
}

/// Idle GPUs and the part of them that a request cannot use.
struct FragmentRate {
    std::int64_t idle_milli = 0;      ///< idle GPUs, in thousandths
    std::int64_t unusable_milli = 0;  ///< part that the request cannot use, in thousandths
    bool operator==(const FragmentRate&) const = default;

    /// Returns the unusable share, 0 to 1; 0 if no GPU is idle.
    [[nodiscard]] double rate() const noexcept {
        return idle_milli == 0 ? 0.0 : static_cast<double>(unusable_milli) / static_cast<double>(idle_milli);
    }
};
template <class F>
constexpr void visit_fields(std::type_identity<FragmentRate>, F&& field) {
    field("idle_milli", &FragmentRate::idle_milli);
    field("unusable_milli", &FragmentRate::unusable_milli);
}

/// The fragment rate as a node metric for `Incremental`. O(1) per changed node.
class FragmentRateMetric : public SumOfFields<FragmentRate> {
  public:
    /// @throws InvalidInput if an option is out of range
    explicit FragmentRateMetric(const FragmentRateOptions& options = {}) : options_(options) {
        require_fields(options);
    }

    [[nodiscard]] FragmentRate state(const Cluster& cluster, NodeId node) const noexcept {
        if (!detail::counts(cluster.inventory().nodes, node, options_.include_cordoned)) return {};
        const int whole = gpu_count(cluster.idle_gpus(node));
        const auto idle = cluster.gpu_free_total_milli(node);
        return {idle, whole >= options_.gpus ? idle - std::int64_t{whole_gpu_milli} * whole : idle};
    }

  private:
    FragmentRateOptions options_;
};

/// Returns the share of idle GPUs that no request of k whole GPUs can use, for any CPU demand.
///
/// The fully idle GPUs of a node are usable if there are at least k of them. Partly used GPUs are never
/// usable. Capacity is idle if a task without spot (LP) rights could take it now: failed GPUs, Standby claims
/// and cordoned nodes are not idle.
/// @throws InvalidInput if an option is out of range
///
/// O(nodes).
[[nodiscard]] inline FragmentRate fragment_rate(const Cluster& cluster,
                                                const FragmentRateOptions& options = {}) {
    return evaluate(FragmentRateMetric(options), cluster);
}

}  // namespace gpusched::fragmentation
