// SPDX-License-Identifier: Apache-2.0
// Ejection rules: which tasks make room on a destination that is too full.
#pragma once

#include <gpusched/consolidation/concepts.hpp>
#include <gpusched/model/feasibility.hpp>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace gpusched::consolidation {

namespace detail {

/// What a node lacks of named resources and devices for a task, while some of its own tasks leave it.
class ExtrasAfter {
  public:
    ExtrasAfter(const Cluster& cluster, const Extras& extras, NodeId node);
    void leave(TaskId victim) noexcept;
    [[nodiscard]] bool fits() const noexcept;

  private:
    const Cluster* cluster_;
    const Extras* extras_;
    NodeId node_;
    GpuMask devices_;
    std::vector<std::int64_t> short_;  // of each resource that the task asks for
};

/// What a node offers to a task once some of its own tasks have left. GPU memory and localities are not looked at.
class RoomAfter {
  public:
    RoomAfter(const Cluster& cluster, TaskId task, NodeId node);
    void leave(TaskId victim) noexcept;
    [[nodiscard]] bool fits() const noexcept {
        return gpu_count(gpus_) >= wanted_ && cpu_short_ <= 0 && memory_short_ <= 0 &&
               (!extras_ || extras_->fits());
    }

  private:
    const Cluster& cluster_;
    NodeId node_;
    GpuMask gpus_;  // that could each serve the task
    int wanted_, share_;
    Lent lent_;
    std::int64_t cpu_short_, memory_short_;
    std::optional<ExtrasAfter> extras_{};                  // of tasks that ask for such
    std::array<std::int16_t, max_gpus_per_node> freed_{};  // by victims that are fractions
};

/// True if `victim` is easier to place than `task`: fewer GPUs, or as many with fewer cores.
[[nodiscard]] bool easier(const Cluster& cluster, TaskId victim, TaskId task) noexcept;

}  // namespace detail

/// All tasks in the order in which the node lists them, provided that they make room together: the paper's rule, as
/// far as it is given. One that finds no place stays, and the next is tried, until the task fits.
struct FirstVictims {
    static constexpr bool may_skip_victims = true;
    bool operator()(const Cluster& cluster, TaskId task, NodeId node, std::span<const Victim> movable,
                    std::vector<Victim>& victims) const;
};

/// The fewest and smallest tasks that make room, all of them easier to place than the task itself: fewer GPUs, or as
/// many with fewer cores. Tasks that have moved already come before those that have not.
struct EasierVictims {
    bool operator()(const Cluster& cluster, TaskId task, NodeId node, std::span<const Victim> movable,
                    std::vector<Victim>& victims) const;
};

/// The same, at the destination where it costs the fewest moves.
struct CheapestVictims : EasierVictims {
    static constexpr bool cheapest_first = true;
};

}  // namespace gpusched::consolidation
