// SPDX-License-Identifier: Apache-2.0
// AllocationRatio: the share of all GPUs that is allocated, for HP tasks and for all tasks.
#pragma once

#include <gpusched/model/cluster.hpp>

#include <cstdint>
#include <type_traits>

namespace gpusched::fragmentation {

/// GPUs allocated to tasks, in thousandths.
struct AllocationRatio {
    std::int64_t capacity_milli = 0;  ///< all GPUs of all nodes, including cordoned nodes and failed GPUs
    std::int64_t hp_milli = 0;        ///< HP tasks, including Standby tasks that lend their GPUs
    std::int64_t lp_milli = 0;        ///< LP (spot) tasks
    std::int64_t other_milli = 0;     ///< tasks of neither class
    std::int64_t held_milli = 0;      ///< all tasks; a lent GPU that an LP task uses counts once
    bool operator==(const AllocationRatio&) const = default;

    /// Returns the share of all GPUs that HP tasks hold, 0 to 1; 0 if the fleet has no GPUs.
    [[nodiscard]] double hp() const noexcept { return share(hp_milli); }
    /// Returns the share of all GPUs that any task (HP, LP or other) holds, 0 to 1.
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

/// Returns the GPU allocation ratio of the ASI paper (section 3.3): allocated GPUs over all GPUs, for HP
/// tasks and for all tasks.
///
/// Reservations of moving tasks do not count. O(nodes + tasks).
[[nodiscard]] AllocationRatio allocation_ratio(const Cluster& cluster);

/// The allocation ratio as a node metric for `Incremental` (incremental.hpp). O(tasks on the node) per
/// change.
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
