// SPDX-License-Identifier: Apache-2.0
// Node filters: constraints in addition to feasibility.
#pragma once

#include <gpusched/allocation/concepts.hpp>
#include <gpusched/allocation/slowdown.hpp>

#include <cstdint>
#include <vector>

namespace gpusched::allocation {

/// Accepts every feasible node.
struct AnyNode {
    static constexpr bool node_local = true;
    bool operator()(const Cluster&, TaskId, NodeId) const noexcept { return true; }
};

/// Accepts only nodes that run a task other than a daemon, so that no empty node is opened.
struct OccupiedNodes {
    static constexpr bool node_local = true;
    bool operator()(const Cluster& cluster, TaskId, NodeId node) const noexcept {
        return cluster.occupants(node) > 0;
    }
};

/// Accepts only nodes of one network domain.
struct WithinDomain {
    static constexpr bool node_local = true;
    Level level = node_level;
    DomainId domain = none<DomainId>;
    bool operator()(const Cluster& cluster, TaskId, NodeId node) const noexcept {
        return cluster.inventory().domain(level, node) == domain;
    }
};

/// Limits co-location: on nodes with GPUs, CPU-only tasks hold at most a part of the cores.
///
/// Binds CPU-only tasks alone: none is accepted that would exceed the limit. Nodes without GPUs pass, and so
/// do daemons and Standby tasks. The ranker `Interference` describes the tasks that this protects. O(tasks on
/// the node).
struct CoLocationLimit {
    static constexpr bool node_local = true;
    std::int64_t limit_milli = 500;  ///< thousandths of the node's cores, 0 to 1000
    bool operator()(const Cluster& cluster, TaskId task, NodeId node) const noexcept {
        if (cluster.gpu_count(node) == 0 || !is_cpu_only(cluster, task) || !interferes(cluster, task))
            return true;
        const auto& inventory = cluster.inventory();
        const auto held = cpu_only_milli(cluster, node) + inventory.tasks.cpu_milli[index(task)];
        return 1000 * held <= limit_milli * inventory.nodes.cpu_milli[index(node)];
    }
};

/// Limits offline work next to online work on one GPU: LP fractions that share a GPU with other fractions
/// hold at most a part of it.
///
/// Binds LP fractions alone: a node is rejected if the fraction would exceed the limit on every GPU that it
/// could take. Use it with the GPU picker `OfflineLimitGpus` of the same limit. O(GPUs x tasks on the node).
struct OfflineLimit {
    static constexpr bool node_local = true;
    std::int64_t limit_milli = 250;  ///< thousandths of one GPU, 0 to 1000
    bool operator()(const Cluster& cluster, TaskId task, NodeId node) const noexcept {
        return !cluster.is_fraction(task) || !cluster.may_borrow(task) ||
               detail::within_offline_limit(cluster, task, node, limit_milli) != 0;
    }
};

/// Accepts nodes that pass both filters.
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
