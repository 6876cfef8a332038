// SPDX-License-Identifier: Apache-2.0
// Occupancy: the numbers of empty, partly used and full GPU nodes.
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

}  // namespace gpusched::fragmentation
