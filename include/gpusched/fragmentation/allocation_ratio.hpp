// SPDX-License-Identifier: Apache-2.0
// How much of the fleet is allocated, to whom.
#pragma once

#include <gpusched/model/cluster.hpp>

#include <cstdint>
#include <type_traits>

namespace gpusched::fragmentation {

/// GPUs allocated to tasks, in thousandths.
struct AllocationRatio {
    std::int64_t capacity_milli = 0;  ///< all GPUs of all nodes, cordoned and failed ones included
    std::int64_t hp_milli = 0;        ///< HP tasks, with those that lent their GPUs as Standby
    std::int64_t lp_milli = 0;        ///< LP (spot) tasks
    std::int64_t other_milli = 0;     ///< tasks of neither class
    std::int64_t held_milli = 0;      ///< by anyone; a GPU that is lent and used by an LP task counts once
    bool operator==(const AllocationRatio&) const = default;

    /// Share of all GPUs that HP tasks have, 0 .. 1; 0 for a fleet without GPUs.
    [[nodiscard]] double hp() const noexcept { return share(hp_milli); }
    /// Share of all GPUs that anyone has: HP + LP (+ others), 0 .. 1.
    [[nodiscard]] double total() const noexcept { return share(held_milli); }

  private:
    [[nodiscard]] double share(std::int64_t milli) const noexcept {
        return capacity_milli == 0 ? 0.0 : static_cast<double>(milli) / static_cast<double>(capacity_milli);
    }
};
template <class F>
constexpr void visit_fields(std::type_identity<AllocationRatio>, F&& field) {
    field("capacity_milli", &AllocationRatio::capacity_milli);
    field("hp_milli", &AllocationRatio::hp_milli);
    field("lp_milli", &AllocationRatio::lp_milli);
    field("other_milli", &AllocationRatio::other_milli);
    field("held_milli", &AllocationRatio::held_milli);
}

/// The GPU allocation ratio in the words of the ASI paper (section 3.3): allocated over all GPUs, for HP tasks alone and for all.
///
/// Reservations of moving tasks do not count. Complexity: O(nodes + tasks).
[[nodiscard]] AllocationRatio allocation_ratio(const Cluster& cluster);

/// The same as a node metric, to be kept up to date by `Incremental` (incremental.hpp). O(tasks on the node) per change.
class AllocationRatioMetric {
  public:
    using State = AllocationRatio;
    using Total = AllocationRatio;
    [[nodiscard]] static State state(const Cluster& cluster, NodeId node) noexcept;
    [[nodiscard]] static Total zero() noexcept { return {}; }
    static void add(Total& total, NodeId node, const State& state, int sign) noexcept;
    [[nodiscard]] static AllocationRatio result(const Total& total) noexcept { return total; }
};

}  // namespace gpusched::fragmentation
