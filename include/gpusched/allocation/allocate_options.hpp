// SPDX-License-Identifier: Apache-2.0
// The options and the result of allocate().
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

/// The rule that spreads pods over switches; see switch_counts.hpp.
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

/// Options of `allocate`.
struct AllocateOptions {
    /// How pods of one shape are spread: `exact` has the least entropy; `entropy` is the paper's Algorithm 2,
    /// as written.
    AllocatePolicy policy = AllocatePolicy::exact;
    /// The level at which the entropy is measured, -1 (nodes) to the deepest level of the network. Absent =
    /// the level of the pods' own `network_affinity`, else the deepest level at which the position of some
    /// node is known.
    std::optional<Level> level{};
    /// `required`: one domain of `level`, or not placed. `preferred`: least entropy. Absent = the mode of the
    /// pods' `network_affinity` at `level`, else preferred. A level that the pods themselves require binds in
    /// any case.
    std::optional<NetworkMode> mode{};
    /// Wishes at other levels. `required`: one domain there as well. `preferred`, at levels above `level`
    /// only: breaks ties of least entropy, the first in the list first. Algorithm 2 ignores the preferred
    /// ones.
    std::vector<NetworkAffinity> further{};
    /// The group of each pod, 0 to groups - 1, one entry per pod. Only `traffic` distinguishes groups of
    /// identical pods. Empty = identical pods form a group; groups are numbered by their first pods.
    std::vector<std::uint32_t> groups{};
    /// Traffic between groups as [group][group], symmetric, >= 0, in any unit. The diagonal holds the traffic
    /// among the pods of one group. Each entry is spread evenly over the pairs of pods. Traffic that crosses
    /// domains of `level` is minimised before the entropy. Empty = none.
    std::vector<std::vector<double>> traffic{};
    /// Seconds, >= 0. The best result found by then is returned, so the result depends on the machine's
    /// speed.
    std::optional<double> time_limit{};
};
template <class F>
constexpr void visit_fields(std::type_identity<AllocateOptions>, F&& field) {
    field("policy", &AllocateOptions::policy);
    field("level", &AllocateOptions::level, IsLevel{});
    field("mode", &AllocateOptions::mode);
    field("time_limit", &AllocateOptions::time_limit, at_least(0));
}

/// The part of a gang in one domain.
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
    std::vector<DomainShare> per_domain{};  ///< used domains of `level`, ascending
    double entropy = 0;        ///< of the GPUs per domain (of the pods if they have no GPUs), in nats
    double cross_traffic = 0;  ///< traffic that crosses domains, in the unit of `traffic`
    /// True if the result is known to be the best: the entropy is the least (with traffic: none crosses), or
    /// no placement exists. False if a search over several shapes hit a limit or may have missed a better
    /// spread, or if a search over group constraints across domains may have missed something. For Algorithm
    /// 2, true only if its entropy is the least.
    bool proven = false;
    Obstacle obstacle = Obstacle::none;  ///< the binding constraint if not placed
    std::string reason{};                ///< the same in words, with figures; empty if placed
    /// `completed`, or the caller's limit that ended the search; a placement may then exist even if none was
    /// found.
    StopReason stop_reason = StopReason::completed;
};

}  // namespace gpusched::allocation
