// SPDX-License-Identifier: Apache-2.0
// Goal: what there is to be after a plan, so many empty nodes or slots for tasks of one shape.
#pragma once

#include <gpusched/core/fields.hpp>
#include <gpusched/core/gpu_mask.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>

namespace gpusched {

/// What a task of one shape takes of a node: a slot for it. At least one amount is above 0.
struct SlotShape {
    int gpu_count = 0;            ///< whole GPUs, 0 .. 64
    std::int64_t cpu_milli = 0;   ///< thousandths of a core, >= 0
    std::int64_t memory_mib = 0;  ///< MiB of memory, >= 0
    bool operator==(const SlotShape&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<SlotShape>, F&& field) {
    field("gpu_count", &SlotShape::gpu_count, UnlessDefault{}, within(0, max_gpus_per_node));
    field("cpu_milli", &SlotShape::cpu_milli, UnlessDefault{}, at_least(0));
    field("memory_mib", &SlotShape::memory_mib, UnlessDefault{}, at_least(0));
}

/// So many empty nodes, or so many slots: exactly one of the two. What is there already counts.
///
/// Nodes that count are not cordoned, and open to whoever is to use them: to the task `usable_by`, or without one to tasks that
/// tolerate no more than the taints (NoSchedule, NoExecute) that all nodes of that GPU model have which are not cordoned. Empty nodes
/// count where they have a GPU that works, in a cluster without GPUs everywhere.
struct Goal {
    /// How many nodes hold no task but daemons, >= 1.
    std::optional<std::int64_t> empty_nodes{};
    /// Slots of this shape, in what is idle on each node.
    std::optional<SlotShape> slots{};
    /// How many slots, >= 1; absent = 1. Only beside `slots`.
    std::optional<std::int64_t> count{};
    /// On nodes of this GPU model only; empty = on any.
    std::string gpu_model{};
    /// On nodes where this task of the cluster may run, by its GPU models, node selector, node affinity and tolerations; empty = see above.
    std::string usable_by{};
    bool operator==(const Goal&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<Goal>, F&& field) {
    field("empty_nodes", &Goal::empty_nodes, at_least(1));
    field("slots", &Goal::slots);
    field("count", &Goal::count, at_least(1));
    field("gpu_model", &Goal::gpu_model, UnlessDefault{});
    field("usable_by", &Goal::usable_by, UnlessDefault{});
}

}  // namespace gpusched
