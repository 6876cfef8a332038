// SPDX-License-Identifier: Apache-2.0
// NetworkTree: the network above the nodes as a tree, with constant-time questions about it.
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

struct BoostTree;  // boost_tree.hpp

/// The network as a tree of domains over nodes: any depth, uneven in width and depth.
///
/// Vertices are a root that stands for "outside" and is no domain, the domains, and the nodes. A node hangs below its
/// deepest known domain; a node of unknown position hangs below the root, so that it shares no domain with anyone.
/// Held as a Boost.Graph (see boost_tree.hpp for access to it), with what is computed once from it: depths, and the nodes
/// below every vertex.
/// Models NetworkGraph. Immutable; copies share the graph; safe to read from several threads.
class NetworkTree {
  public:
    enum class Vertex : std::uint32_t {};

    /// The network of a snapshot. O(nodes x levels).
    explicit NetworkTree(const Inventory& inventory);

    /// The network that a graph of any other type describes.
    ///
    /// Domains get ids per level in depth-first order. Nodes that the graph does not reach are of unknown position.
    /// @param node_count how many nodes there are; the graph's NodeIds must be below
    /// @throws InvalidInput when a node is out of range or reached twice, a node has children, a domain has no name
    ///         or that of another one, or there are more than 16 levels (as in a graph with a cycle)
    template <NetworkGraph G>
    [[nodiscard]] static NetworkTree from_graph(const G& graph, std::size_t node_count);

    // Vertices ---------------------------------------------------------------------------------------------
    [[nodiscard]] std::size_t vertex_count() const noexcept { return places_.size(); }
    [[nodiscard]] std::size_t node_count() const noexcept { return vertex_of_node_.size(); }
    [[nodiscard]] static constexpr Vertex root() noexcept { return Vertex{0}; }
    [[nodiscard]] Vertex vertex(NodeId node) const noexcept { return vertex_of_node_[index(node)]; }
    /// The vertex of an inventory's domain; for the domain that a node of unknown position makes up, the node.
    [[nodiscard]] Vertex vertex(Level level, DomainId domain) const noexcept {
        return level == node_level ? vertex_of_node_[index(domain)]
                                   : vertex_of_domain_[static_cast<std::size_t>(level)][index(domain)];
    }
    /// The node at a leaf; `none` for domains and the root.
    [[nodiscard]] NodeId node(Vertex v) const noexcept;
    /// The id of a domain among those of its level; for a node, its index. Not for the root.
    [[nodiscard]] DomainId domain(Vertex v) const noexcept;
    /// The name of a domain, empty for the root and for nodes (the inventory has theirs).
    [[nodiscard]] const std::string& name(Vertex v) const noexcept;

    // Levels -----------------------------------------------------------------------------------------------
    /// Levels of domains: 0 .. levels() - 1 from the top.
    [[nodiscard]] int levels() const noexcept { return static_cast<int>(domain_counts_.size()); }
    /// A domain's level, `node_level` for nodes. Not for the root.
    [[nodiscard]] Level level(Vertex v) const noexcept {
        return node(v) == none<NodeId> ? depth(v) - 1 : node_level;
    }
    /// Edges between the vertex and the root.
    [[nodiscard]] int depth(Vertex v) const noexcept { return at(v).depth; }
    /// The domains of a level, by ascending id; nodes of unknown position are not among them.
    [[nodiscard]] std::span<const Vertex> domains(Level level) const noexcept {
        const auto l = static_cast<std::size_t>(level);
        return std::span(vertex_of_domain_[l]).first(domain_counts_[l]);
    }

    // Up and down ------------------------------------------------------------------------------------------
    /// The vertex above; the root for the root.
    [[nodiscard]] Vertex parent(Vertex v) const noexcept;
    /// The vertices right below, domains before nodes. O(their number).
    [[nodiscard]] std::vector<Vertex> children(Vertex v) const;
    /// All nodes in depth-first order: those of any domain are neighbours, and of two neighbouring domains those
    /// with a common domain above come first. Nodes of unknown position come last.
    [[nodiscard]] std::span<const NodeId> locality_order() const noexcept { return order_; }
    /// The nodes below a vertex (a node: itself), in locality order. O(1).
    [[nodiscard]] std::span<const NodeId> nodes_under(Vertex v) const noexcept {
        return std::span(order_).subspan(at(v).first_node, at(v).node_count);
    }
    /// The ancestor at a level, or the node (of unknown position there) itself. O(levels).
    [[nodiscard]] Vertex ancestor(NodeId node, Level level) const noexcept;

    // Pairs ------------------------------------------------------------------------------------------------
    /// The deepest vertex above (or equal to) both; the root when they share no domain. O(levels).
    [[nodiscard]] Vertex common_ancestor(Vertex a, Vertex b) const noexcept;
    /// Edges on the path between two vertices: 2 for nodes under one switch; none when they share no domain.
    /// O(levels).
    [[nodiscard]] std::optional<int> distance(Vertex a, Vertex b) const noexcept;

    /// The same tree as a Boost.Graph; its vertex descriptors are the indices of `Vertex`.
    [[nodiscard]] const BoostTree& boost_tree() const noexcept { return *graph_; }

  private:
    struct Record {  // input of the build; parents come before their children, the root first
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
        vertex_of_domain_;  // [level][DomainId]: domains, then nodes that stand for themselves
    std::vector<std::size_t> domain_counts_;  // [level]: how many of them are domains
};

// Template bodies --------------------------------------------------------------------------------------------

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
