// Node filters: wishes on top of feasibility.
#pragma once

#include <gpusched/allocation/concepts.hpp>

#include <vector>

namespace GPUSCHED_NAMESPACE::allocation {

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

}  // namespace GPUSCHED_NAMESPACE::allocation
