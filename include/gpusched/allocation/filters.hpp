// SPDX-License-Identifier: Apache-2.0
// Node filters: wishes on top of feasibility.
#pragma once

#include <gpusched/allocation/concepts.hpp>
#include <gpusched/allocation/neighbours.hpp>

#include <cstdint>
#include <vector>

namespace gpusched::allocation {

/// Every feasible node.
struct AnyNode {
    static constexpr bool node_local = true;
    bool operator()(const Cluster&, TaskId, NodeId) const noexcept { return true; }
};

/// Only nodes on which something other than daemons runs, so that no empty node is opened.
struct OccupiedNodes {
    static constexpr bool node_local = true;
    bool operator()(const Cluster& cluster, TaskId, NodeId node) const noexcept {
        return cluster.occupants(node) > 0;
    }
};

/// Only nodes of one network domain.
struct WithinDomain {
    static constexpr bool node_local = true;
    Level level = node_level;
    DomainId domain = none<DomainId>;
    bool operator()(const Cluster& cluster, TaskId, NodeId node) const noexcept {
        return cluster.inventory().domain(level, node) == domain;
    }
};

/// A limit of co-location: on nodes with GPUs, CPU-only tasks hold at most a part of the cores.
///
/// Binds CPU-only tasks alone, the guests of such nodes: none may come that would exceed the limit. Nodes without GPUs pass, and so do daemons and Standby tasks. See the
/// ranker `Interference` for whom it protects. O(tasks on the node).
struct CoLocationLimit {
    static constexpr bool node_local = true;
    std::int64_t limit_milli = 500;  ///< thousandths of the node's cores, 0 .. 1000
    bool operator()(const Cluster& cluster, TaskId task, NodeId node) const noexcept {
        if (cluster.gpu_count(node) == 0 || !is_cpu_only(cluster, task) || !interferes(cluster, task))
            return true;
        const auto& inventory = cluster.inventory();
        const auto held = cpu_only_milli(cluster, node) + inventory.tasks.cpu_milli[index(task)];
        return 1000 * held <= limit_milli * inventory.nodes.cpu_milli[index(node)];
    }
};

/// A limit of offline work beside online work on one GPU: where other fractions run, LP fractions hold at most a part of it.
///
/// Binds LP fractions alone, the guests of such GPUs: one that could only go to GPUs where it would exceed the limit does not go to
/// the node. Use it with the GPU picker `OfflineLimitGpus` of the same limit. O(GPUs x tasks on the node).
struct OfflineLimit {
    static constexpr bool node_local = true;
    std::int64_t limit_milli = 250;  ///< thousandths of one GPU, 0 .. 1000
    bool operator()(const Cluster& cluster, TaskId task, NodeId node) const noexcept {
        return !cluster.is_fraction(task) || !cluster.may_borrow(task) ||
               detail::within_offline_limit(cluster, task, node, limit_milli) != 0;
    }
};

/// Nodes that pass both filters.
template <NodeFilter A, NodeFilter B>
struct Both {
    static constexpr bool node_local = is_node_local<A> && is_node_local<B>;
    A first;
    B second;
    bool operator()(const Cluster& cluster, TaskId task, NodeId node) const {
        return first(cluster, task, node) && second(cluster, task, node);
    }
    [[nodiscard]] bool is_node_local() const {
        return detail::node_local(first) && detail::node_local(second);
    }
};

}  // namespace gpusched::allocation
