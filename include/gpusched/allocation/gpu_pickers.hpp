// SPDX-License-Identifier: Apache-2.0
// GPU pickers: which GPUs of the chosen node a task takes.
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

// All pickers expect a node that fits the task (find_obstacle) and honour guaranteed NUMA or socket localities. Where
// a rule leaves a choice, the lowest GPUs win. ByWish looks at what the task wishes, best-effort wishes included;
// FewestCrossings and ByLinks treat all tasks as if they wished to sit close together, the others look at no wish.

/// A fraction goes to the GPU with the least left, whole GPUs are the lowest idle ones. O(GPUs of the node).
struct TightestGpu {
    GpuMask operator()(const Cluster& cluster, TaskId task, NodeId node) const;
};

/// GPUs of as few sockets, then of as few NUMA nodes as possible; among those, the ones that leave the largest blocks
/// of idle GPUs per socket and per NUMA node to others. Nodes of unknown hardware count as one NUMA node; a fraction
/// goes to the tightest GPU. Of up to 16 candidate GPUs all sets are
/// looked at (a few thousand at most, usually under 100 of 8 GPUs); of more, one set per GPU, grown from it GPU by GPU.
struct FewestCrossings {
    GpuMask operator()(const Cluster& cluster, TaskId task, NodeId node) const;
};

/// The criteria of FewestCrossings the other way round: for tasks that do not care where their GPUs are.
struct LeastHarm {
    GpuMask operator()(const Cluster& cluster, TaskId task, NodeId node) const;
};

/// What the task wishes (`hardware_affinity`, best effort or guaranteed): with a NUMA wish FewestCrossings; with a
/// socket wish the fewest sockets, then the largest idle blocks left, then the fewest NUMA nodes; without any
/// LeastHarm, which keeps room for those that wish.
struct ByWish {
    GpuMask operator()(const Cluster& cluster, TaskId task, NodeId node) const;
};

/// Machines as graphs, for what snapshots do not hold: links. A node's own goes before that of its GPU model.
///
/// From the readers of machines (io/), HardwareGraph::preset, or by hand. What the graphs say of who holds a GPU and
/// which ones have failed is not looked at: the snapshot knows.
struct MachineGraphs {
    std::map<std::string, topology::HardwareGraph> by_gpu_model{}, by_node{};
};

/// FewestCrossings with links: GPUs of as few sockets, then of as few NUMA nodes as possible; among those, the set whose
/// worst pair has the greatest bandwidth over NVLink or PCIe, then the shortest paths; then the one that leaves the
/// largest idle blocks, then the greatest sum of bandwidths between the GPUs that stay idle.
///
/// Exact among up to 16 candidate GPUs: all sets are compared, 12,870 at most (8 of 16), usually under 100 (of 8). Of more
/// candidates, the best of one set per GPU, grown from it GPU by GPU. Nodes without a graph are judged as
/// by FewestCrossings; a fraction goes to the tightest GPU. Copies share the graphs.
class ByLinks {
  public:
    /// @param inventory of the cluster that will be asked about, or of one with the same nodes
    /// @throws InvalidInput with every GPU model and node that the inventory does not have, and every node with a
    ///     healthy GPU that its graph lacks
    ByLinks(const Inventory& inventory, MachineGraphs machines);
    /// @throws InvalidInput when the node has a healthy GPU that its graph lacks, as may be in another cluster
    GpuMask operator()(const Cluster& cluster, TaskId task, NodeId node) const;

  private:
    std::shared_ptr<const MachineGraphs> machines_;
};

/// Any GPUs that will do, all sets equally likely (within an equally likely locality where one is guaranteed).
struct RandomGpus {
    GpuMask operator()(const Cluster& cluster, TaskId task, NodeId node, Rng& rng) const;
};

/// FGD's choice as published: a fraction goes to the GPU of the best score (see the ranker LeastFragmentation), truncation included;
/// whole GPUs as TightestGpu. O(square of the GPUs of the node).
struct FgdGpus {
    std::shared_ptr<const fragmentation::Fgd> metric;
    GpuMask operator()(const Cluster& cluster, TaskId task, NodeId node) const;
};

/// For a fraction the GPU of `ExpectedFill::best` (see the ranker LeastFillLoss), whole GPUs as TightestGpu.
struct LeastFillLossGpus {
    std::shared_ptr<const fragmentation::ExpectedFill> measure;
    GpuMask operator()(const Cluster& cluster, TaskId task, NodeId node) const;
};

/// A fraction goes to the tightest GPU on which LP fractions then hold at most a part beside others (see the filter OfflineLimit); to the
/// tightest of all where there is none. Whole GPUs as TightestGpu. O(GPUs x tasks on the node).
///
/// Binds both sides: an online fraction prefers GPUs without much offline work, and takes another where that is all there is.
struct OfflineLimitGpus {
    std::int64_t limit_milli = 250;  ///< thousandths of one GPU, 0 .. 1000
    GpuMask operator()(const Cluster& cluster, TaskId task, NodeId node) const;
};

}  // namespace gpusched::allocation
