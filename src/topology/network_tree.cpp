// SPDX-License-Identifier: Apache-2.0
// Builds the network tree and answers queries about vertices.
#include <gpusched/config.hpp>
#include <gpusched/topology/boost_graph.hpp>
#include <gpusched/topology/network_tree.hpp>

#include <set>

namespace gpusched::topology {

GPUSCHED_EXPORT NetworkTree::NetworkTree(const Inventory& inventory) {
    const auto nodes = inventory.living_nodes();
    const int levels = inventory.named_levels();
    std::vector<Record> records(1);
    // Domains level by level, by ascending id, without nodes that are their own domain.
    std::vector<std::vector<std::uint32_t>> record_of(static_cast<std::size_t>(levels));
    for (Level l = 0; l < levels; ++l) {
        auto& here = record_of[static_cast<std::size_t>(l)];
        std::vector<bool> known(inventory.domain_count(l));
        for (const auto node : nodes)
            if (inventory.position_known(l, node)) known[index(inventory.domain(l, node))] = true;
        here.resize(known.size());
        for (std::size_t d = 0; d < known.size(); ++d) {
            if (!known[d]) continue;
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
    build(std::move(records), inventory.nodes.names.size());

    // Constraints may name levels that no node has. At these levels every node is its own domain.
    vertex_of_domain_.resize(static_cast<std::size_t>(levels));
    domain_counts_.resize(static_cast<std::size_t>(levels));
    for (Level l = 0; l < levels; ++l) {
        auto& here = vertex_of_domain_[static_cast<std::size_t>(l)];
        here.resize(inventory.domain_count(l), root());
        for (const auto node : nodes)
            if (!inventory.position_known(l, node)) here[index(inventory.domain(l, node))] = vertex(node);
    }
}

GPUSCHED_EXPORT NetworkTree::NetworkTree(std::vector<Record> records, std::size_t node_count) {
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

GPUSCHED_EXPORT void NetworkTree::build(std::vector<Record> records, std::size_t node_count) {
    // Children are in the order of their edges: domains first, then nodes.
    std::vector<std::pair<std::size_t, std::size_t>> edges;
    edges.reserve(records.size() - 1);
    for (const bool leaves : {false, true})
        for (std::size_t i = 1; i < records.size(); ++i)
            if ((records[i].node != none<NodeId>) == leaves) edges.emplace_back(records[i].parent, i);
    const auto made = std::make_shared<BoostTree>(boost::edges_are_unsorted_multi_pass, edges.begin(),
                                                  edges.end(), records.size());
    auto& graph = *made;
    for (std::size_t i = 0; i < records.size(); ++i)
        graph[i] = {std::move(records[i].name), records[i].node, records[i].domain};
    graph_ = made;

    // Records list parents before their children: first the sums, from the last record to the root, then the
    // places in depth-first order, from the root to the last record.
    places_.resize(records.size());
    for (std::size_t i = records.size() - 1; i > 0; --i) {
        places_[i].node_count += graph[i].node == none<NodeId> ? 0 : 1;
        places_[records[i].parent].node_count += places_[i].node_count;
    }
    order_.resize(places_.front().node_count);
    vertex_of_node_.resize(node_count);
    for (std::size_t i = 0; i < records.size(); ++i) {
        const Vertex v{static_cast<std::uint32_t>(i)};
        auto next = places_[i].first_node;
        for (const auto child : children(v)) {
            auto& place = places_[static_cast<std::size_t>(child)];
            place.depth = places_[i].depth + 1;
            place.first_node = next;
            next += place.node_count;
        }
        if (graph[i].node == none<NodeId>) continue;
        order_[next] = graph[i].node;
        vertex_of_node_[index(graph[i].node)] = v;
    }

    for (std::size_t i = 1; i < records.size(); ++i) {
        if (graph[i].node != none<NodeId>) continue;
        const auto level = static_cast<std::size_t>(places_[i].depth) - 1;
        if (vertex_of_domain_.size() <= level) vertex_of_domain_.resize(level + 1);
        vertex_of_domain_[level].push_back(Vertex{static_cast<std::uint32_t>(i)});
    }
    for (const auto& domains : vertex_of_domain_) domain_counts_.push_back(domains.size());
}

GPUSCHED_EXPORT NodeId NetworkTree::node(Vertex v) const noexcept {
    return (*graph_)[static_cast<std::size_t>(v)].node;
}

GPUSCHED_EXPORT DomainId NetworkTree::domain(Vertex v) const noexcept {
    return (*graph_)[static_cast<std::size_t>(v)].domain;
}

GPUSCHED_EXPORT const std::string& NetworkTree::name(Vertex v) const noexcept {
    return (*graph_)[static_cast<std::size_t>(v)].name;
}

GPUSCHED_EXPORT NetworkTree::Vertex NetworkTree::parent(Vertex v) const noexcept {
    if (v == root()) return root();
    const auto up = in_edges(static_cast<std::size_t>(v), *graph_).first;
    return Vertex{static_cast<std::uint32_t>(source(*up, *graph_))};
}

GPUSCHED_EXPORT std::vector<NetworkTree::Vertex> NetworkTree::children(Vertex v) const {
    std::vector<Vertex> below;
    for (auto [child, end] = adjacent_vertices(static_cast<std::size_t>(v), *graph_); child != end; ++child)
        below.push_back(Vertex{static_cast<std::uint32_t>(*child)});
    return below;
}

GPUSCHED_EXPORT NetworkTree::Vertex NetworkTree::ancestor(NodeId node, Level level) const noexcept {
    auto v = vertex(node);
    if (level == node_level) return v;
    while (depth(v) > level + 1) v = parent(v);
    return v;
}

GPUSCHED_EXPORT NetworkTree::Vertex NetworkTree::common_ancestor(Vertex a, Vertex b) const noexcept {
    while (depth(a) > depth(b)) a = parent(a);
    while (depth(b) > depth(a)) b = parent(b);
    while (a != b) {
        a = parent(a);
        b = parent(b);
    }
    return a;
}

GPUSCHED_EXPORT std::optional<int> NetworkTree::distance(Vertex a, Vertex b) const noexcept {
    if (a == b) return 0;
    const auto meet = common_ancestor(a, b);
    if (meet == root()) return std::nullopt;
    return depth(a) + depth(b) - 2 * depth(meet);
}

}  // namespace gpusched::topology
