// SPDX-License-Identifier: Apache-2.0
// GPU pickers: choose the GPUs that a task takes on its node.
#pragma once

#include <gpusched/allocation/concepts.hpp>
#include <gpusched/fragmentation/expected_fill.hpp>
#include <gpusched/fragmentation/fgd.hpp>
#include <gpusched/model/inventory.hpp>
#include <gpusched/topology/hardware_graph.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <string>

namespace gpusched::allocation {

// All pickers expect a node that fits the task (find_obstacle) and respect guaranteed NUMA or socket
// localities. If a rule leaves a choice, the lowest GPUs win. ByWish uses the task's wish, best-effort wishes
// included. FewestCrossings and ByLinks treat every task as if it wished for GPUs close together; the others
// ignore wishes.

/// Puts a fraction on the GPU with the least left; whole GPUs are the lowest idle ones. O(GPUs of the node).
struct TightestGpu {
    GpuMask operator()(const Cluster& cluster, TaskId task, NodeId node) const;
};

/// Takes GPUs of as few sockets, then of as few NUMA nodes as possible. Among those, takes the ones that
/// leave the largest blocks of idle GPUs per socket and per NUMA node. Nodes of unknown hardware count as one
/// NUMA node; a fraction goes to the tightest GPU. With up to 16 candidate GPUs, compares all sets (a few
/// thousand at most, usually under 100 of 8 GPUs). With more, compares one set per GPU, grown from it GPU by
/// GPU.
struct FewestCrossings {
    GpuMask operator()(const Cluster& cluster, TaskId task, NodeId node) const;
};

/// Takes the GPUs that leave the largest blocks of idle GPUs per socket, then per NUMA node. Ties go to the
/// fewest sockets, then the fewest NUMA nodes. For tasks without a hardware affinity.
struct LeastHarm {
    GpuMask operator()(const Cluster& cluster, TaskId task, NodeId node) const;
};

/// Follows the task's wish (`hardware_affinity`, best effort or guaranteed). NUMA wish: FewestCrossings.
/// Socket wish: the fewest sockets, then the largest idle blocks left, then the fewest NUMA nodes. No wish:
/// LeastHarm, which preserves blocks for tasks that have a wish.
struct ByWish {
    GpuMask operator()(const Cluster& cluster, TaskId task, NodeId node) const;
};

/// Machines as graphs: their links, which snapshots do not contain. A node's own graph has precedence over
/// that of its GPU model.
///
/// Graphs come from the readers of machines (io/), HardwareGraph::preset, or the caller. Their data on GPU
/// holders and failed GPUs is ignored: the snapshot has it.
struct MachineGraphs {
    std::map<std::string, topology::HardwareGraph> by_gpu_model{};  ///< names as for `matching_gpu_models`
    std::map<std::string, topology::HardwareGraph> by_node{};
};

/// FewestCrossings with links: takes GPUs of as few sockets, then of as few NUMA nodes as possible. Ties are
/// broken, in this order, by the worst pair's bandwidth over NVLink or PCIe (greatest), the shortest paths,
/// the largest idle blocks left, and the sum of bandwidths between the GPUs that stay idle (greatest).
///
/// Exact among up to 16 candidate GPUs: all sets are compared, 12,870 at most (8 of 16), usually under 100
/// (of 8). With more candidates, takes the best of one set per GPU, grown from it GPU by GPU. Nodes without a
/// graph are judged as by FewestCrossings; a fraction goes to the tightest GPU. Copies share the graphs.
class ByLinks {
  public:
    /// @param inventory of the cluster that will be used, or of one with the same nodes
    /// @throws InvalidInput with every GPU model and node that the inventory does not have, and every node
    ///     with a healthy GPU that its graph lacks
    ByLinks(const Inventory& inventory, MachineGraphs machines);
    /// @throws InvalidInput if the node has a healthy GPU that its graph lacks, which is possible in another
    ///     cluster
    GpuMask operator()(const Cluster& cluster, TaskId task, NodeId node) const;

  private:
    std::shared_ptr<const MachineGraphs> machines_;
};

/// Takes any GPUs that fit, all sets equally likely. If a locality is guaranteed, chooses it first, all
/// equally likely.
struct RandomGpus {
    GpuMask operator()(const Cluster& cluster, TaskId task, NodeId node, Rng& rng) const;
};

/// FGD's choice as published: a fraction goes to the GPU of the best score (see the ranker
/// LeastFragmentation), truncation included; whole GPUs as TightestGpu. O(square of the GPUs of the node).
struct FgdGpus {
    std::shared_ptr<const fragmentation::Fgd> metric;
    GpuMask operator()(const Cluster& cluster, TaskId task, NodeId node) const;
};

/// Puts a fraction on the GPU of `ExpectedFill::best` (see the ranker LeastFillLoss); whole GPUs as
/// TightestGpu.
struct LeastFillLossGpus {
    std::shared_ptr<const fragmentation::ExpectedFill> measure;
    GpuMask operator()(const Cluster& cluster, TaskId task, NodeId node) const;
};

/// Puts a fraction on the tightest GPU on which LP fractions then hold at most a part next to others (see the
/// filter OfflineLimit), or on the tightest GPU of all if there is none. Whole GPUs as TightestGpu. O(GPUs x
/// tasks on the node).
///
/// Affects both sides: an online fraction prefers GPUs without much offline work, and takes another if there
/// is no such GPU.
struct OfflineLimitGpus {
    std::int64_t limit_milli = 250;  ///< thousandths of one GPU, 0 to 1000
    GpuMask operator()(const Cluster& cluster, TaskId task, NodeId node) const;
};

}  // namespace gpusched::allocation
