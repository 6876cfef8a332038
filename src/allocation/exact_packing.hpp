// SPDX-License-Identifier: Apache-2.0
// Decides whether pods of several shapes fit together into given nodes: an exact search, up to a limit.
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

/// Returns a key that is equal for tasks with equal requests. Pods of two jobs that each must stay together
/// have different keys.
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
    std::optional<HardwareLevel> level{};  // all GPUs of a pod must be within one locality of this level
};

enum class Packed : std::uint8_t {
    yes,
    no,       // proven: there is no packing
    unknown,  // the limit of steps was hit, or a limit of the caller
};

/// Steps of one search. A step takes about 20 to 100 ns.
inline constexpr std::int64_t packing_steps = 200'000;

/// Places all pods on the nodes, or finds that they do not fit. The cluster is unchanged at the end.
///
/// A node has a list of options: maximal combinations of shapes that it can take. Nodes with the same options
/// are one kind. The search decides how often each option is taken, so that the options cover all pods. It is
/// depth-first and tries the options that fill most first. It remembers failed states. It stops if the
/// remaining nodes cannot cover one shape, or all shapes together in GPUs, cores or memory. Pods with group
/// constraints that tie them to each other (`grouped`) are placed one by one instead.
///
/// @param ignored group constraints of this kind do not count; `none`: all do
/// @param steps the remaining steps of the limit; counted down, to 0 if the budget is exhausted
/// @param out the placements, by node; only if the answer is yes
[[nodiscard]] Packed pack(Cluster& cluster, std::span<const PodShape> shapes, std::span<const NodeId> nodes,
                          bool grouped, std::int64_t& steps, std::vector<Placement>& out,
                          Budget* budget = nullptr, Obstacle ignored = Obstacle::none);

}  // namespace gpusched::allocation::detail
