// SPDX-License-Identifier: Apache-2.0
// NetworkTree: the network above the nodes as a tree, with constant-time queries.
#pragma once

#include <gpusched/core/errors.hpp>
#include <gpusched/core/ids.hpp>
#include <gpusched/model/inventory.hpp>
#include <gpusched/topology/concepts.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace gpusched::topology {

struct BoostTree;  // boost_graph.hpp

/// The network as a tree of domains over nodes. Branches may have any width and depth.
///
/// The vertices are the root, the domains and the nodes. The root is not a domain; it stands for "outside". A
/// node is a child of its deepest known domain. A node of unknown position is a child of the root, so it
/// shares no domain with any other node. The representation is a Boost.Graph (boost_graph.hpp gives access to
/// it). Depths and the nodes below every vertex are computed once. Models NetworkGraph. Immutable; copies
/// share the graph. Safe to read from several threads.
class NetworkTree {
  public:
    enum class Vertex : std::uint32_t {};

    /// Builds the network of an inventory. O(nodes x levels).
    explicit NetworkTree(const Inventory& inventory);

    /// Builds the network that a graph of another type describes.
    ///
    /// Domains get ids per level in depth-first order. Nodes that the graph does not reach have unknown
    /// position.
    /// @param node_count the number of nodes; the graph's NodeIds must be smaller
    /// @throws InvalidInput if a node is out of range or reached twice, a node has children, a domain has no
    ///     name or the name of another domain, or there are more than 16 levels (as in a graph with a cycle)
    template <NetworkGraph G>
    [[nodiscard]] static NetworkTree from_graph(const G& graph, std::size_t node_count);

    // Vertices ---------------------------------------------------------------------------------------------
    [[nodiscard]] std::size_t vertex_count() const noexcept { return places_.size(); }
    [[nodiscard]] std::size_t node_count() const noexcept { return vertex_of_node_.size(); }
    [[nodiscard]] static constexpr Vertex root() noexcept { return Vertex{0}; }
    [[nodiscard]] Vertex vertex(NodeId node) const noexcept { return vertex_of_node_[index(node)]; }
    /// Returns the vertex of an inventory's domain. If the domain is a node of unknown position, this is the
    /// node's vertex.
    [[nodiscard]] Vertex vertex(Level level, DomainId domain) const noexcept {
        return level == node_level ? vertex_of_node_[index(domain)]
                                   : vertex_of_domain_[static_cast<std::size_t>(level)][index(domain)];
    }
    /// Returns the node of a leaf; `none` for domains and the root.
    [[nodiscard]] NodeId node(Vertex v) const noexcept;
    /// Returns the id of a domain within its level; for a node, its index. Undefined for the root.
    [[nodiscard]] DomainId domain(Vertex v) const noexcept;
    /// Returns the name of a domain; empty for the root and for nodes (the inventory has the names of nodes).
    [[nodiscard]] const std::string& name(Vertex v) const noexcept;

    // Levels -----------------------------------------------------------------------------------------------
    /// Returns the number of levels of domains. Levels are 0 to levels() - 1 from the top.
    [[nodiscard]] int levels() const noexcept { return static_cast<int>(domain_counts_.size()); }
    /// Returns a domain's level; `node_level` for nodes. Undefined for the root.
    [[nodiscard]] Level level(Vertex v) const noexcept {
        return node(v) == none<NodeId> ? depth(v) - 1 : node_level;
    }
    /// Returns the number of edges between the vertex and the root.
    [[nodiscard]] int depth(Vertex v) const noexcept { return at(v).depth; }
    /// Returns the domains of a level by ascending id, without nodes of unknown position.
    [[nodiscard]] std::span<const Vertex> domains(Level level) const noexcept {
        const auto l = static_cast<std::size_t>(level);
        return std::span(vertex_of_domain_[l]).first(domain_counts_[l]);
    }

    // Up and down ------------------------------------------------------------------------------------------
    /// Returns the parent; the root for the root.
    [[nodiscard]] Vertex parent(Vertex v) const noexcept;
    /// Returns the children, domains before nodes. O(their number).
    [[nodiscard]] std::vector<Vertex> children(Vertex v) const;
    /// Returns all nodes in depth-first order. The nodes of each domain, at every level, are contiguous.
    /// Nodes of unknown position come last.
    [[nodiscard]] std::span<const NodeId> locality_order() const noexcept { return order_; }
    /// Returns the nodes below a vertex in locality order; a node itself for a node. O(1).
    [[nodiscard]] std::span<const NodeId> nodes_under(Vertex v) const noexcept {
        return std::span(order_).subspan(at(v).first_node, at(v).node_count);
    }
    /// Returns the node's ancestor at a level; the node itself if its position is unknown at this level.
    /// O(levels).
    [[nodiscard]] Vertex ancestor(NodeId node, Level level) const noexcept;

    // Pairs ------------------------------------------------------------------------------------------------
    /// Returns the deepest vertex above or equal to both; the root if they share no domain. O(levels).
    [[nodiscard]] Vertex common_ancestor(Vertex a, Vertex b) const noexcept;
    /// Returns the number of edges on the path between two vertices: 2 for nodes under one switch; none if
    /// they share no domain. O(levels).
    [[nodiscard]] std::optional<int> distance(Vertex a, Vertex b) const noexcept;

    /// Returns the tree as a Boost.Graph. Its vertex descriptors are the indices of `Vertex`.
    [[nodiscard]] const BoostTree& boost_tree() const noexcept { return *graph_; }

  private:
    struct Record {  // input of build(); the root is first, and parents come before their children
        std::uint32_t parent = 0;
        NodeId node = none<NodeId>;
        DomainId domain = none<DomainId>;
        std::string name;
    };
    NetworkTree(std::vector<Record> records, std::size_t node_count);
    void build(std::vector<Record> records, std::size_t node_count);

    struct Place {
        int depth = 0;
        std::uint32_t first_node = 0, node_count = 0;  // in order_
    };
    [[nodiscard]] const Place& at(Vertex v) const noexcept { return places_[static_cast<std::size_t>(v)]; }

    std::shared_ptr<const BoostTree> graph_;
    std::vector<Place> places_;  // by Vertex
    std::vector<NodeId> order_;
    std::vector<Vertex> vertex_of_node_;
    std::vector<std::vector<Vertex>>
        vertex_of_domain_;  // [level][DomainId]: domains, then nodes that are their own domain
    std::vector<std::size_t> domain_counts_;  // [level]: number of domains, without such nodes
};

// Template bodies -------------------------------------------------------------------------------------------

template <NetworkGraph G>
NetworkTree NetworkTree::from_graph(const G& graph, std::size_t node_count) {
    constexpr int most_levels = 16;
    struct Open {
        typename G::Vertex vertex;
        std::uint32_t parent;
        int depth;
    };
    std::vector<Record> records(1);
    std::vector<Open> stack{{graph.root(), 0, 0}};
    std::vector<Open> below;
    while (!stack.empty()) {
        const Open open = std::move(stack.back());
        stack.pop_back();
        std::uint32_t self = 0;
        const NodeId node = graph.node(open.vertex);
        if (open.depth > 0) {
            self = static_cast<std::uint32_t>(records.size());
            records.push_back({open.parent, node, none<DomainId>,
                               node == none<NodeId> ? std::string(graph.name(open.vertex)) : std::string()});
        }
        below.clear();
        for (const auto& child : graph.children(open.vertex)) below.push_back({child, self, open.depth + 1});
        if (!below.empty() && node != none<NodeId>)
            throw InvalidInput("network graph: node #" + std::to_string(index(node)) + " has children");
        if (open.depth > most_levels && node == none<NodeId>)
            throw InvalidInput("network graph: more than 16 levels of domains; is there a cycle?");
        stack.insert(stack.end(), below.rbegin(), below.rend());
    }
    return NetworkTree(std::move(records), node_count);
}

}  // namespace gpusched::topology
