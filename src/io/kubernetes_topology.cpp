// SPDX-License-Identifier: Apache-2.0
#include "io/yaml_document.hpp"

#include <gpusched/config.hpp>
#include <gpusched/core/errors.hpp>
#include <gpusched/core/file.hpp>
#include <gpusched/core/text.hpp>
#include <gpusched/io/kubernetes_topology.hpp>

#include <algorithm>
#include <set>
#include <utility>

namespace gpusched::io {

namespace detail {

constexpr std::string_view hostname_label = "kubernetes.io/hostname";

static TopologyLevels topology_levels(const Place& object, Problems& problems) {
    TopologyLevels out{.name = object["metadata"]["name"].text().value_or("")};
    const auto levels = object["spec"]["levels"];
    if (!levels.is(json::Kind::array) || levels.items().empty() || levels.items().size() > 16)
        problems.add(object.where() + "expected spec.levels, an array of 1 to 16 levels");
    for (const auto& level : levels.items()) {
        const auto label = level["nodeLabel"].text();
        if (!label || label->empty())
            problems.add(level.where() + "expected an object with nodeLabel");
        else if (std::find(out.node_labels.begin(), out.node_labels.end(), *label) != out.node_labels.end())
            problems.add(level.where() + gpusched::quoted(printable(*label)) + " occurs twice");
        else if (!out.node_labels.empty() && out.node_labels.back() == hostname_label)
            problems.add(level.where() + "expected no level below " + std::string(hostname_label));
        else
            out.node_labels.push_back(*label);
    }
    return out;
}

template <class Nodes, class Name, class Labels>
NetworkReading place_by_labels(const TopologyLevels& levels, const Nodes& nodes, Name&& name,
                               Labels&& labels) {
    NetworkReading out;
    for (const auto& label : levels.node_labels)
        if (label != hostname_label) out.levels.push_back(label);
    std::size_t short_paths = 0;
    std::map<std::string, std::set<std::vector<std::string>>> paths_of;  // of each value: where it occurs
    for (const auto& node : nodes) {
        NetworkReading::Node placed{.name = name(node)};
        for (const auto& label : out.levels) {
            const auto found = labels(node).find(label);
            if (found == labels(node).end() || found->second.empty()) break;
            auto& path = placed.network;
            path.push_back(found->second);
            paths_of[found->second].insert(path);
        }
        short_paths += placed.network.size() < out.levels.size();
        out.nodes.push_back(std::move(placed));
    }
    // Label values have no slash, so that a name with one is that of no other domain.
    bool renamed = false;
    for (auto& node : out.nodes) {
        const auto values = node.network;
        std::string above;
        for (std::size_t l = 0; l < values.size(); ++l) {
            above += (l == 0 ? "" : "/") + values[l];
            if (paths_of.at(values[l]).size() == 1) continue;
            renamed = renamed || l > 0;
            node.network[l] = above;
        }
    }
    if (renamed)
        out.notes.push_back("domains: equal labels in different places; named with what is above them");
    if (short_paths > 0)
        out.notes.push_back("nodes: " + std::to_string(short_paths) +
                            " lack labels of some levels and are placed above them");
    return out;
}

}  // namespace detail

GPUSCHED_EXPORT TopologyLevels topology_levels_from_text(std::string_view text,
                                                         const KubernetesTopologyOptions& options,
                                                         std::string_view source_name) {
    const std::string source(source_name);
    Problems problems;
    const auto documents = detail::read_objects(text, source, problems);
    problems.throw_if_any();
    std::vector<detail::Place> meant;
    std::string names;
    for (const auto& object : detail::kubernetes_objects(documents)) {
        const auto group = object["apiVersion"].text().value_or("");
        if (object["kind"].text() != "Topology" ||
            !(group.starts_with("kueue.x-k8s.io/") || group.starts_with("kai.scheduler/")))
            continue;
        const auto name = object["metadata"]["name"].text().value_or("");
        names += (names.empty() ? "" : ", ") + gpusched::quoted(printable(name));
        if (options.topology.empty() || options.topology == name) meant.push_back(object);
    }
    if (meant.size() != 1)
        throw InvalidInput(
            source + ": expected one object of kind Topology (kueue.x-k8s.io or kai.scheduler)" +
            (options.topology.empty() ? std::string()
                                      : " and name " + gpusched::quoted(printable(options.topology))) +
            ", found " + (names.empty() ? "none" : names));
    auto levels = detail::topology_levels(meant.front(), problems);
    problems.throw_if_any();
    return levels;
}

GPUSCHED_EXPORT std::vector<LabelledNode> labelled_nodes_from_text(std::string_view text,
                                                                   std::string_view source_name) {
    const std::string source(source_name);
    Problems problems;
    const auto documents = detail::read_objects(text, source, problems);
    problems.throw_if_any();
    std::vector<LabelledNode> out;
    std::set<std::string> seen;
    for (const auto& object : detail::kubernetes_objects(documents)) {
        if (object["kind"].text() != "Node") continue;
        LabelledNode node{.name = object["metadata"]["name"].text().value_or("")};
        if (node.name.empty())
            problems.add(object.where() + "expected metadata.name");
        else if (!seen.insert(node.name).second)
            problems.add(object.where() + "node " + gpusched::quoted(printable(node.name)) + " occurs twice");
        const auto labels = object["metadata"]["labels"];
        if (labels && !labels.is(json::Kind::object)) problems.add(labels.expected("an object"));
        for (const auto& label : labels.items()) {
            const auto value = label.text();
            if (!value || value->find('/') != value->npos)
                problems.add(label.expected("text without a slash"));
            else
                node.labels.emplace(label.key(), *value);
        }
        out.push_back(std::move(node));
    }
    if (out.empty() && problems.empty()) problems.add(source + ": expected objects of kind Node, found none");
    problems.throw_if_any();
    return out;
}

GPUSCHED_EXPORT NetworkReading network_from_labels(const TopologyLevels& levels,
                                                   std::span<const LabelledNode> nodes) {
    return detail::place_by_labels(
        levels, nodes, [](const LabelledNode& node) { return node.name; },
        [](const LabelledNode& node) -> const auto& { return node.labels; });
}

GPUSCHED_EXPORT NetworkReading network_from_labels(const TopologyLevels& levels, const ClusterSpec& cluster) {
    return detail::place_by_labels(
        levels, cluster.nodes, [](const NodeSpec& node) { return node.name; },
        [](const NodeSpec& node) -> const auto& { return node.labels; });
}

GPUSCHED_EXPORT NetworkReading read_kubernetes_topology(const std::string& topology_path,
                                                        const std::string& nodes_path,
                                                        const KubernetesTopologyOptions& options) {
    const auto levels = topology_levels_from_text(read_file(topology_path), options, topology_path);
    return network_from_labels(levels, labelled_nodes_from_text(read_file(nodes_path), nodes_path));
}

}  // namespace gpusched::io
