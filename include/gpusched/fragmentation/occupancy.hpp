// SPDX-License-Identifier: Apache-2.0
// Occupancy and FragmentRate: empty, partly used and full nodes, and the idle GPUs that a request of k GPUs
// cannot use.
#pragma once

#include <gpusched/core/fields.hpp>
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

/// Counts empty, not fully occupied and fully occupied nodes. Consolidation in the ASI paper (section 4.1)
/// reduces the second number. Failed GPUs, Standby claims and cordoned nodes are not idle. O(nodes).
[[nodiscard]] Occupancy occupancy(const Cluster& cluster, const OccupancyOptions& options = {});

/// Occupancy as a node metric for `Incremental` (incremental.hpp). O(1) per changed node.
class OccupancyMetric {
  public:
    explicit OccupancyMetric(const OccupancyOptions& options = {}) : options_(options) {}

    using State = Occupancy;
    using Total = Occupancy;
    [[nodiscard]] State state(const Cluster& cluster, NodeId node) const noexcept;
    [[nodiscard]] static Total zero() noexcept { return {}; }
    static void add(Total& total, NodeId node, const State& state, int sign) noexcept;
    [[nodiscard]] static Occupancy result(const Total& total) noexcept { return total; }

  private:
    OccupancyOptions options_;
};

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

/// Returns the share of idle GPUs that no request of k whole GPUs can use, for any CPU demand.
///
/// The fully idle GPUs of a node are usable if there are at least k of them. Partly used GPUs are never
/// usable. Capacity is idle if a task without spot (LP) rights could take it now: failed GPUs, Standby claims
/// and cordoned nodes are not idle.
/// @throws InvalidInput if an option is out of range
///
/// O(nodes).
[[nodiscard]] FragmentRate fragment_rate(const Cluster& cluster, const FragmentRateOptions& options = {});

/// The fragment rate as a node metric for `Incremental` (incremental.hpp). O(1) per changed node.
class FragmentRateMetric {
  public:
    explicit FragmentRateMetric(const FragmentRateOptions& options = {});

    using State = FragmentRate;
    using Total = FragmentRate;
    [[nodiscard]] State state(const Cluster& cluster, NodeId node) const noexcept;
    [[nodiscard]] static Total zero() noexcept { return {}; }
    static void add(Total& total, NodeId, const State& state, int sign) noexcept {
        total.idle_milli += sign * state.idle_milli;
        total.unusable_milli += sign * state.unusable_milli;
    }
    [[nodiscard]] static FragmentRate result(const Total& total) noexcept { return total; }

  private:
    FragmentRateOptions options_;
};

}  // namespace gpusched::fragmentation
