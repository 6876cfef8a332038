// SPDX-License-Identifier: Apache-2.0
// Whether pods of several shapes fit together into given nodes: an exact search, up to a limit.
#pragma once

#include <gpusched/core/budget.hpp>
#include <gpusched/model/feasibility.hpp>
#include <gpusched/model/plan.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

namespace gpusched::allocation::detail {

/// What tasks have in common that ask for the same. Pods of two jobs that each must stay together do not.
inline auto shape_of(const Inventory& inv, TaskId task) {
    const auto& t = inv.tasks;
    const auto i = index(task);
    auto gang = none<JobId>;
    for (const auto& m : inv.affinity_memberships(task))
        if (inv.group_sets[m.set].kind == GroupKind::network) gang = t.job[i];
    return std::tuple(t.gpu_count[i], t.gpu_share_milli[i], t.cpu_milli[i], t.memory_mib[i],
                      t.gpu_memory_mib[i], t.requirement[i], t.extras[i], t.affinities[i],
                      t.priority_class[i], gang);
}

/// Pending pods of one shape.
struct PodShape {
    std::vector<TaskId> pods{};            // at least one
    std::optional<HardwareLevel> level{};  // within one of these
};

enum class Packed : std::uint8_t {
    yes,
    no,       // proven: there is no way
    unknown,  // the limit was hit, or the caller's
};

/// Steps of one search; some 20 to 100 ns each.
inline constexpr std::int64_t packing_steps = 200'000;

/// Places all pods on the nodes, or finds that they do not fit. The cluster is as before in the end.
///
/// What a node can take of the shapes is a list of options, of which none holds another; nodes with the same options are one
/// kind. So the question is which options to take how often, so that they cover all pods. Depth-first, options that
/// fill most first, with the states that failed kept, and cut where what is left could not cover one shape, or all in GPUs,
/// cores or memory. Pods with group constraints that tie them to each other (`grouped`) are placed one by one instead.
///
/// @param ignored group constraints of this kind do not count; `none`: all do
/// @param steps what is left of the limit; counted down, to 0 where the budget is exhausted
/// @param out the placements, by node; only where the answer is yes
[[nodiscard]] Packed pack(Cluster& cluster, std::span<const PodShape> shapes, std::span<const NodeId> nodes,
                          bool grouped, std::int64_t& steps, std::vector<Placement>& out,
                          Budget* budget = nullptr, Obstacle ignored = Obstacle::none);

}  // namespace gpusched::allocation::detail
