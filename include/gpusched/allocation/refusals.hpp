// SPDX-License-Identifier: Apache-2.0
// Refusals: the constraints that keep a task off each node, each asked alone.
#pragma once

#include <gpusched/core/enum_names.hpp>
#include <gpusched/core/ids.hpp>
#include <gpusched/model/cluster.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace gpusched::allocation {

/// Constraints on a node, in the order of tables: first those that never change for a task, then the state of the
/// node, what is in use, and other tasks.
enum class Constraint : std::uint8_t {
    gpu_model,      ///< the task does not accept the GPU model
    node_selector,  ///< a label that it selects is missing
    node_affinity,  ///< no term of its node affinity holds
    taint,          ///< a taint that it does not tolerate
    volume,         ///< the node does not reach a volume
    cordoned,       ///< the node is cordoned, drained or down
    not_ready,      ///< the node is not ready, by a taint of Kubernetes
    failed_gpus,    ///< with the failed GPUs the node would have enough
    gpu,            ///< too few idle GPUs, or no GPU with enough left for a fraction
    gpu_memory,     ///< too little memory of GPUs
    hardware,       ///< too few GPUs within one NUMA node or socket
    device,         ///< too few free devices of one class
    cpu,
    memory,
    resource,       ///< too little of a named resource; each has a row of its own
    pods,           ///< too many pods: the named resource `pods`
    port,           ///< a host port is in use
    volume_in_use,  ///< another pod uses a volume that only one may use
    anti_affinity,
    avoid,     ///< pod anti-affinity, in both directions
    spread,    ///< topology spread
    near,      ///< pod affinity
    affinity,  ///< all members of a group in one domain
    network,   ///< all pods of a job in one network domain
};

/// The order in which constraints are asked, which decides the first one that refuses a node.
enum class ConstraintOrder : std::uint8_t {
    permanence,  ///< that of `Constraint`
    kube,        ///< that of kube-scheduler's filters
};

/// True for the constraints that never change for a task.
[[nodiscard]] constexpr bool is_permanent(Constraint constraint) noexcept {
    return constraint <= Constraint::volume;
}

/// Returns the constraints of one task that refuse a node, in the state of the cluster at the time of the call.
///
/// A node that no constraint refuses is one that `find_obstacle` accepts. GPUs, GPU memory and hardware overlap:
/// - `failed_gpus` refuses a node that could never hold the task without its failed GPUs. `gpu` refuses in addition
///   if they would not suffice.
/// - `gpu_memory` and `hardware` refuse if enough GPUs are idle, or if the node could never hold the task.
class Refusals {
  public:
    /// @param cluster must outlive this
    Refusals(const Cluster& cluster, TaskId task, ConstraintOrder order = ConstraintOrder::permanence);

    /// A constraint that can refuse the task: a row of a table.
    struct Row {
        Constraint constraint = Constraint::gpu;
        std::uint32_t resource =
            0;  ///< `resource`, `pods` and `volume`: an index into Inventory::resource_names
    };
    [[nodiscard]] std::span<const Row> rows() const noexcept { return rows_; }
    [[nodiscard]] TaskId task() const noexcept { return task_; }
    /// The name of a row: that of its constraint, for a named resource `resource` and its name.
    [[nodiscard]] std::string name(std::size_t row) const;
    /// The same in the words of messages, such as "too few idle GPUs".
    [[nodiscard]] std::string words(std::size_t row) const;

    /// The rows that refuse the node, ascending. O(rows + GPUs + groups of the task).
    [[nodiscard]] std::vector<std::uint32_t> of(NodeId node) const;
    /// Returns true if none of them never changes.
    [[nodiscard]] bool in_pool(NodeId node) const;
    /// The amount that a row misses on a node, in the unit of the row; 0 if it has none.
    [[nodiscard]] std::int64_t missing(std::size_t row, NodeId node) const;
    /// Whether the node has any of what a row counts, in use or not: GPUs, devices, a named resource.
    [[nodiscard]] bool has_any(std::size_t row, NodeId node) const;
    /// The taints of the node that refuse the task for this constraint, such as `key=value:NoSchedule`.
    [[nodiscard]] std::string taints(Constraint constraint, NodeId node) const;
    /// Describes a refusal with the required and the actual value.
    [[nodiscard]] std::string describe(std::size_t row, NodeId node) const;
    /// Thousandths of idle GPUs on the node, and the most on one GPU.
    struct Idle {
        std::int64_t milli = 0, most = 0;
    };
    [[nodiscard]] Idle idle(NodeId node) const;

  private:
    struct Gpus;
    [[nodiscard]] Gpus gpus(NodeId node) const;
    [[nodiscard]] bool refuses(const Row& row, NodeId node, const Gpus& gpus) const;
    [[nodiscard]] std::int64_t amount(std::uint32_t resource) const;

    const Cluster& cluster_;
    const Inventory& inv_;
    TaskId task_;
    std::vector<Row> rows_;
};

}  // namespace gpusched::allocation
