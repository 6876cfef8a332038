#pragma once

#include <gpusched/topology/boost_tree.hpp>
#include <gpusched/topology/network_tree.hpp>

#include <boost/graph/depth_first_search.hpp>

#include <algorithm>
#include <set>

namespace gpusched::topology {
namespace detail {

// Calls back on the way down and on the way up.
template <class Discover, class Finish>
struct DepthFirst : boost::default_dfs_visitor {
    Discover on_discover;
    Finish on_finish;
    DepthFirst(Discover d, Finish f) : on_discover(std::move(d)), on_finish(std::move(f)) {}
    template <class G>
    void discover_vertex(typename boost::graph_traits<G>::vertex_descriptor v, const G&) {
        on_discover(v);
    }
    template <class G>
    void finish_vertex(typename boost::graph_traits<G>::vertex_descriptor v, const G&) {
        on_finish(v);
    }
};

}  // namespace detail

GPUSCHED_INLINE NetworkTree::NetworkTree(const Inventory& inventory) {
    const IdRange<NodeId> nodes(inventory.nodes.names.size());
    const int levels = inventory.named_levels();
    std::vector<Record> records(1);
    // Domains level by level, by ascending id. Known ones have the smallest ids of their level.
    std::vector<std::vector<std::uint32_t>> record_of(static_cast<std::size_t>(levels));
    for (Level l = 0; l < levels; ++l) {
        auto& here = record_of[static_cast<std::size_t>(l)];
        std::size_t known = 0;
        for (const auto node : nodes)
            if (inventory.position_known(l, node))
                known = std::max(known, index(inventory.domain(l, node)) + 1);
        here.resize(known);
        for (std::size_t d = 0; d < known; ++d) {
            const auto id = make_id<DomainId>(d);
            here[d] = static_cast<std::uint32_t>(records.size());
            records.push_back({0, none<NodeId>, id, inventory.domain_name(l, id)});
        }
    }
    for (const auto node : nodes) {
        std::uint32_t above = 0;
        for (Level l = 0; l < inventory.network_depth(node); ++l) {
            const auto here = record_of[static_cast<std::size_t>(l)][index(inventory.domain(l, node))];
            records[here].parent = above;
            above = here;
        }
        records.push_back({above, node, make_id<DomainId>(index(node)), {}});
    }
    build(std::move(records), nodes.size());

    // Constraints may name levels that no node has; there every node stands for itself.
    vertex_of_domain_.resize(static_cast<std::size_t>(levels));
    domains_.resize(static_cast<std::size_t>(levels));
    for (Level l = 0; l < levels; ++l) {
        auto& here = vertex_of_domain_[static_cast<std::size_t>(l)];
        here.resize(inventory.domain_count(l), root());
        for (const auto node : nodes)
            if (!inventory.position_known(l, node)) here[index(inventory.domain(l, node))] = vertex(node);
    }
}

GPUSCHED_INLINE NetworkTree::NetworkTree(std::vector<Record> records, std::size_t node_count) {
    std::vector<bool> seen(node_count);
    std::set<std::string> names;
    std::vector<int> depth(records.size());
    std::vector<std::uint32_t> domains_at;
    for (std::size_t i = 1; i < records.size(); ++i) {
        auto& record = records[i];
        depth[i] = depth[record.parent] + 1;
        if (record.node == none<NodeId>) {
            if (record.name.empty()) throw InvalidInput("network graph: a domain has no name");
            if (!names.insert(record.name).second)
                throw InvalidInput("network graph: duplicate domain name " + gpusched::quoted(record.name));
            const auto level = static_cast<std::size_t>(depth[i]) - 1;
            if (domains_at.size() <= level) domains_at.resize(level + 1);
            record.domain = make_id<DomainId>(domains_at[level]++);
            continue;
        }
        const auto node = index(record.node);
        if (node >= node_count)
            throw InvalidInput("network graph: node #" + std::to_string(node) +
                               " is out of range; there are " + std::to_string(node_count));
        if (seen[node])
            throw InvalidInput("network graph: node #" + std::to_string(node) + " is reached twice");
        seen[node] = true;
        record.domain = make_id<DomainId>(node);
    }
    for (std::size_t node = 0; node < node_count; ++node)
        if (!seen[node]) records.push_back({0, make_id<NodeId>(node), make_id<DomainId>(node), {}});
    build(std::move(records), node_count);
}

GPUSCHED_INLINE void NetworkTree::build(std::vector<Record> records, std::size_t node_count) {
    // Children in the order of their edges: domains first, then nodes.
    const auto made = std::make_shared<BoostTree>(records.size());
    auto& graph = *made;
    for (const bool leaves : {false, true})
        for (std::size_t i = 1; i < records.size(); ++i)
            if ((records[i].node != none<NodeId>) == leaves) add_edge(records[i].parent, i, graph);

    vertices_.resize(records.size());
    vertex_of_node_.resize(node_count);
    for (std::size_t i = 0; i < records.size(); ++i) {
        auto& info = vertices_[i];
        info.parent = Vertex{records[i].parent};
        info.node = records[i].node;
        info.domain = records[i].domain;
        if (info.node != none<NodeId>)
            vertex_of_node_[index(info.node)] = Vertex{static_cast<std::uint32_t>(i)};
        graph[i] = {std::move(records[i].name), info.node};
    }

    const auto discover = [&](std::size_t v) {
        auto& info = vertices_[v];
        if (v != 0) info.depth = at(info.parent).depth + 1;
        info.first_node = static_cast<std::uint32_t>(order_.size());
        if (info.node != none<NodeId>) order_.push_back(info.node);
        info.first_child = static_cast<std::uint32_t>(children_.size());
        for (auto [edge, end] = out_edges(v, graph); edge != end; ++edge)
            children_.push_back(Vertex{static_cast<std::uint32_t>(target(*edge, graph))});
        info.child_count = static_cast<std::uint32_t>(children_.size()) - info.first_child;
    };
    const auto finish = [&](std::size_t v) {
        vertices_[v].node_count = static_cast<std::uint32_t>(order_.size()) - vertices_[v].first_node;
    };
    std::vector<boost::default_color_type> colour(records.size());
    boost::depth_first_visit(
        graph, 0, detail::DepthFirst(discover, finish),
        boost::make_iterator_property_map(colour.begin(), get(boost::vertex_index, graph)));
    graph_ = made;

    for (std::size_t i = 1; i < vertices_.size(); ++i) {
        if (vertices_[i].node != none<NodeId>) continue;
        const auto level = static_cast<std::size_t>(vertices_[i].depth) - 1;
        if (domains_.size() <= level) domains_.resize(level + 1);
        domains_[level].push_back(Vertex{static_cast<std::uint32_t>(i)});
    }
    vertex_of_domain_ = domains_;
}

GPUSCHED_INLINE const std::string& NetworkTree::name(Vertex v) const noexcept {
    return (*graph_)[static_cast<std::size_t>(v)].name;
}

GPUSCHED_INLINE NetworkTree::Vertex NetworkTree::ancestor(NodeId node, Level level) const noexcept {
    auto v = vertex(node);
    if (level == node_level) return v;
    while (depth(v) > level + 1) v = parent(v);
    return v;
}

GPUSCHED_INLINE NetworkTree::Vertex NetworkTree::common_ancestor(Vertex a, Vertex b) const noexcept {
    while (depth(a) > depth(b)) a = parent(a);
    while (depth(b) > depth(a)) b = parent(b);
    while (a != b) {
        a = parent(a);
        b = parent(b);
    }
    return a;
}

GPUSCHED_INLINE std::optional<int> NetworkTree::distance(Vertex a, Vertex b) const noexcept {
    if (a == b) return 0;
    const auto meet = common_ancestor(a, b);
    if (meet == root()) return std::nullopt;
    return depth(a) + depth(b) - 2 * depth(meet);
}

}  // namespace gpusched::topology
