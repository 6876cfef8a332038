// SPDX-License-Identifier: Apache-2.0
// The share of idle GPUs that a request of k GPUs cannot use.
#pragma once

#include <gpusched/core/fields.hpp>
#include <gpusched/model/cluster.hpp>

#include <cstdint>
#include <type_traits>

namespace gpusched::fragmentation {

struct FragmentRateOptions {
    int gpus = 8;                   ///< k: whole GPUs of one node that the request asks for, 1 .. 64
    bool include_cordoned = false;  ///< GPUs of cordoned nodes count as idle too
};
template <class F>
constexpr void visit_fields(std::type_identity<FragmentRateOptions>, F&& field) {
    field("gpus", &FragmentRateOptions::gpus, within(1, gpusched::max_gpus_per_node));
    field("include_cordoned", &FragmentRateOptions::include_cordoned);
}

struct FragmentRate {
    std::int64_t idle_milli = 0;      ///< idle GPU quantity, in thousandths
    std::int64_t unusable_milli = 0;  ///< what of it the request cannot use
    bool operator==(const FragmentRate&) const = default;

    /// 0 .. 1; 0 where nothing is idle.
    [[nodiscard]] double rate() const noexcept {
        return idle_milli == 0 ? 0.0 : static_cast<double>(unusable_milli) / static_cast<double>(idle_milli);
    }
};

/// The share of idle GPUs that no request of k whole GPUs can use, whatever CPU it asks for.
///
/// A node's entirely idle GPUs are usable if there are at least k of them; parts of GPUs never are. Idle is what a
/// task without spot (LP) rights could take now: failed GPUs, Standby claims and cordoned nodes are not idle.
/// @throws InvalidInput when an option is out of range
/// Complexity: O(nodes).
[[nodiscard]] FragmentRate fragment_rate(const Cluster& cluster, const FragmentRateOptions& options = {});

/// The same as a node metric, to be kept up to date by `Incremental` (incremental.hpp). O(1) per changed node.
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
