// SPDX-License-Identifier: Apache-2.0
// What allocate takes and gives.
#pragma once

#include <gpusched/core/budget.hpp>
#include <gpusched/core/fields.hpp>
#include <gpusched/model/cluster.hpp>
#include <gpusched/model/feasibility.hpp>
#include <gpusched/model/plan.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace gpusched::allocation {

/// Which rule spreads the pods over switches; see switch_counts.hpp.
enum class AllocatePolicy : std::uint8_t {
    entropy,  ///< the paper's Algorithm 2, as written
    exact,    ///< least entropy
};
constexpr auto enum_names(AllocatePolicy) {
    return name_table<AllocatePolicy>({
        {AllocatePolicy::entropy, "entropy"},
        {AllocatePolicy::exact, "exact"},
    });
}

/// How `allocate` works.
struct AllocateOptions {
    /// How pods of one shape are spread: `exact` has the least entropy; `entropy` is the paper's Algorithm 2, as written.
    AllocatePolicy policy = AllocatePolicy::exact;
    /// Where the entropy is measured, -1 (nodes) to the deepest level of the network. Absent = the level of the pods'
    /// own `network_affinity`, else the deepest that some node's position is known at.
    std::optional<Level> level{};
    /// `required`: one domain of `level`, or not placed. `preferred`: least entropy. Absent = what the pods'
    /// `network_affinity` says at `level`, else preferred. A level that the pods themselves require binds in any case.
    std::optional<NetworkMode> mode{};
    /// Wishes at other levels. `required`: one domain there as well. `preferred`, at levels above `level` only: breaks ties
    /// of least entropy, the first in the list first. Algorithm 2 does not look at the preferred ones.
    std::vector<NetworkAffinity> further{};
    /// Which group each pod belongs to, 0 .. groups - 1, one entry per pod; only `traffic` tells groups of alike pods apart.
    /// Empty = pods that ask for the same are a group, numbered by their first pods.
    std::vector<std::uint32_t> groups{};
    /// Traffic between groups, symmetric, >= 0, in any unit: [group][group], with what the pods of one group exchange
    /// among themselves on the diagonal. Each entry is spread evenly over the pairs of pods. What crosses domains of `level`
    /// is then minimised before the entropy. Empty = none.
    std::vector<std::vector<double>> traffic{};
    /// Seconds, >= 0. A guard: the best found until then is returned. The result then depends on the machine.
    std::optional<double> time_limit{};
};
template <class F>
constexpr void visit_fields(std::type_identity<AllocateOptions>, F&& field) {
    field("policy", &AllocateOptions::policy);
    field("level", &AllocateOptions::level, IsLevel{});
    field("mode", &AllocateOptions::mode);
    field("time_limit", &AllocateOptions::time_limit, at_least(0));
}

/// What one domain holds of a gang.
struct DomainShare {
    DomainId domain = none<DomainId>;
    std::int64_t pods = 0;
    std::int64_t gpu_milli = 0;  ///< thousandths of a GPU
    bool operator==(const DomainShare&) const = default;
};

struct Allocation {
    bool placed = false;
    std::vector<Placement> pods{};  ///< in the order given; empty unless placed
    Level level = node_level;
    std::vector<DomainShare> per_domain{};  ///< domains of `level` that are used, ascending
    double entropy = 0;                     ///< over their GPUs (over pods where there is no GPU), in nats
    double cross_traffic = 0;               ///< what crosses domains, in the unit of `traffic`
    /// The best possible: the entropy is the least (with traffic: none crosses), or no placement exists. False where a search
    /// over several shapes hit a limit or may have missed a better spread, where one over group constraints across domains
    /// may have missed something, and for Algorithm 2 unless
    /// its entropy is the least.
    bool proven = false;
    Obstacle obstacle = Obstacle::none;  ///< the binding constraint when not placed
    std::string reason{};                ///< the same in words, with figures; empty when placed
    /// `completed`, or the caller's limit that ended the search; a gang without a place then may have one all the same.
    StopReason stop_reason = StopReason::completed;
};

}  // namespace gpusched::allocation
