// SPDX-License-Identifier: Apache-2.0
#include <gpusched/config.hpp>
#include <gpusched/core/errors.hpp>
#include <gpusched/io/network_reading.hpp>

#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace gpusched::io {

namespace detail {

/// The domains of a reading as a graph for NetworkTree::from_graph.
class PathGraph {
  public:
    using Vertex = std::size_t;

    explicit PathGraph(const NetworkReading& reading) : vertices_(1) {
        std::map<std::pair<Vertex, std::string_view>, Vertex> domains;
        for (std::size_t n = 0; n < reading.nodes.size(); ++n) {
            Vertex above = 0;
            for (const auto& domain : reading.nodes[n].network) {
                const auto [found, added] = domains.try_emplace({above, domain}, vertices_.size());
                if (added) add(above, none<NodeId>, domain);
                above = found->second;
            }
            add(above, make_id<NodeId>(n), {});
        }
    }
    [[nodiscard]] Vertex root() const { return 0; }
    [[nodiscard]] const std::vector<Vertex>& children(Vertex v) const { return vertices_[v].children; }
    [[nodiscard]] NodeId node(Vertex v) const { return vertices_[v].node; }
    [[nodiscard]] std::string name(Vertex v) const { return vertices_[v].name; }

  private:
    struct Entry {
        NodeId node = none<NodeId>;
        std::string name{};
        std::vector<Vertex> children{};
    };
    void add(Vertex above, NodeId node, const std::string& name) {
        vertices_[above].children.push_back(vertices_.size());
        vertices_.push_back({node, name, {}});
    }
    std::vector<Entry> vertices_;
};

}  // namespace detail

GPUSCHED_EXPORT topology::NetworkTree network_tree(const NetworkReading& reading) {
    return topology::NetworkTree::from_graph(detail::PathGraph(reading), reading.nodes.size());
}

GPUSCHED_EXPORT std::size_t set_network(ClusterSpec& cluster, const NetworkReading& reading) {
    std::unordered_map<std::string_view, const NetworkReading::Node*> known;
    for (const auto& node : reading.nodes) known.emplace(node.name, &node);
    std::size_t set = 0;
    for (auto& node : cluster.nodes) {
        const auto found = known.find(node.name);
        if (found == known.end()) continue;
        node.network = found->second->network;
        ++set;
    }
    return set;
}

}  // namespace gpusched::io
