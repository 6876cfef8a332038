// SPDX-License-Identifier: Apache-2.0
// Reads networks from Slurm's topology files and from labels of Kubernetes nodes.
#include "io/documents.hpp"
#include "io/slurm/values.hpp"

#include <gpusched/config.hpp>
#include <gpusched/core/errors.hpp>
#include <gpusched/core/file.hpp>
#include <gpusched/core/text.hpp>
#include <gpusched/io/network_files.hpp>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
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

namespace detail {

/// Collects switches and blocks. `where` is the beginning of messages.
class SlurmNetwork {
  public:
    static constexpr std::size_t most_levels = 16;

    /// @param text_size  of the text with the lists of hosts
    SlurmNetwork(Problems& problems, std::size_t text_size) : problems_(problems), left_(text_size) {}

    void add(const std::string& where, bool block, const std::string& name, std::string_view switches,
             std::string_view nodes) {
        if (name.empty()) return problems_.add(where + "expected a name");
        if (!domains_.empty() && domains_.front().block != block)
            problems_.add(where + "expected only SwitchName or only BlockName, found both");
        if (!index_.emplace(name, domains_.size()).second)
            problems_.add(where + in_quotes(name) + " occurs twice");
        Domain domain{.where = where, .name = name, .block = block};
        list(where, "Switches", switches, domain.below);
        list(where, "Nodes", nodes, domain.nodes);
        domains_.push_back(std::move(domain));
    }

    void sizes(const std::string& where, const std::vector<std::string>& texts) {
        for (const auto& text : texts) {
            int size = 0;
            if (!read_number(text, size) || size <= 0 ||
                (!sizes_.empty() && (size % sizes_.front() != 0 || size <= sizes_.back())))
                problems_.add(where + "BlockSizes: expected ascending multiples of the first one, found " +
                              in_quotes(text));
            else
                sizes_.push_back(size);
        }
    }

    NetworkReading reading(const std::string& source) {
        if (domains_.empty()) problems_.add(source + ": expected switches or blocks, found none");
        problems_.throw_if_any();
        for (std::size_t d = 0; d < domains_.size(); ++d)
            for (const auto& name : domains_[d].below) {
                const auto found = index_.find(name);
                if (found == index_.end()) {
                    problems_.add(domains_[d].where + "switch " + in_quotes(name) + " has no line");
                } else if (domains_[found->second].above) {
                    problems_.add(domains_[d].where + "switch " + in_quotes(name) + " is below " +
                                  in_quotes(domains_[*domains_[found->second].above].name) + " already");
                } else {
                    domains_[found->second].above = d;
                }
            }
        problems_.throw_if_any();
        NetworkReading out;
        std::map<std::string_view, std::string_view> seen;
        for (std::size_t d = 0; d < domains_.size(); ++d) {
            const auto path = path_to(d);
            left_.place = domains_[d].where + in_quotes(domains_[d].name) + " with its nodes ";
            for (const auto& node : domains_[d].nodes) {
                left_.take(node.size() + bytes_of(path) + sizeof(NetworkReading::Node) + 100);
                if (const auto [other, added] = seen.emplace(node, domains_[d].name); !added) {
                    problems_.add(domains_[d].where + "node " + in_quotes(node) + " is below " +
                                  in_quotes(other->second) + " already");
                    continue;
                }
                out.nodes.push_back({node, path});
            }
        }
        problems_.throw_if_any();
        return out;
    }

  private:
    struct Domain {
        std::string where{}, name{};
        bool block = false;
        std::vector<std::string> below{}, nodes{};
        std::optional<std::size_t> above{};
    };

    void list(const std::string& where, const char* key, std::string_view text,
              std::vector<std::string>& out) {
        if (text.empty() || exceeded_) return;  // later lists cannot be judged
        left_.place = concat(where, key, ": ", in_quotes(text), " ");
        try {
            if (auto names = slurm::host_list(text, left_))
                out = std::move(*names);
            else
                problems_.add(where + key + ": expected names such as node[01-04,7], found " +
                              in_quotes(text));
        } catch (const InvalidInput& error) {
            exceeded_ = true;
            problems_.add(error.what());
        }
    }

    /// From the root down to the domain.
    std::vector<std::string> path_to(std::size_t domain) {
        std::vector<std::string> path;
        std::optional<std::size_t> here = domain;
        for (; here && path.size() <= most_levels; here = domains_[*here].above)
            path.push_back(domains_[*here].name);
        // Joined blocks are domains above; a size that joins no more blocks than the previous one adds none.
        auto width = std::size_t{1};
        for (std::size_t s = 1; domains_[domain].block && s < sizes_.size(); ++s) {
            const auto joined = static_cast<std::size_t>(sizes_[s] / sizes_.front());
            if (width >= domains_.size()) break;
            width = joined;
            const auto first = domain / width * width, last = std::min(first + width, domains_.size()) - 1;
            path.push_back(concat(domains_[first].name, "..", domains_[last].name, "/", sizes_[s]));
        }
        if (path.size() > most_levels)
            problems_.add(domains_[domain].where + "expected at most 16 levels; is a switch above itself?");
        std::ranges::reverse(path);
        return path;
    }

    Problems& problems_;
    std::vector<Domain> domains_;
    std::map<std::string, std::size_t> index_;
    std::vector<int> sizes_;
    Expansion left_;
    bool exceeded_ = false;  // a list stands for more than is left
};

/// Reads one line without comments, with continuations joined: words key=value.
static void slurm_line(std::string_view line, const std::string& where, SlurmNetwork& network,
                       Problems& problems) {
    std::map<std::string, std::string> words;
    for (auto word = take_word(line); !word.empty(); word = take_word(line)) {
        const auto equals = word.find('=');
        const auto key = slurm::upper_case(word.substr(0, equals));
        if (equals == word.npos || (key != "SWITCHNAME" && key != "SWITCHES" && key != "NODES" &&
                                    key != "BLOCKNAME" && key != "BLOCKSIZES" && key != "LINKSPEED"))
            return problems.add(
                where +
                "expected SwitchName=, Switches=, Nodes=, LinkSpeed=, BlockName= or BlockSizes=, found " +
                in_quotes(word));
        if (!words.emplace(key, word.substr(equals + 1)).second)
            return problems.add(where + in_quotes(word.substr(0, equals)) + " occurs twice");
    }
    if (words.empty()) return;
    if (words.contains("BLOCKSIZES")) {
        std::vector<std::string> sizes{""};
        for (const char c : words["BLOCKSIZES"])
            if (c == ',')
                sizes.emplace_back();
            else
                sizes.back() += c;
        if (words.size() != 1) problems.add(where + "expected BlockSizes alone in its line");
        return network.sizes(where, sizes);
    }
    const bool block = words.contains("BLOCKNAME");
    if (block == words.contains("SWITCHNAME") || (block && words.contains("SWITCHES")))
        return problems.add(where + "expected either a SwitchName or a BlockName with its Nodes");
    network.add(where, block, words[block ? "BLOCKNAME" : "SWITCHNAME"], words["SWITCHES"], words["NODES"]);
}

/// A host list in YAML: text, or an array of texts.
static std::string slurm_hosts(const Place& place, Problems& problems) {
    if (!place) return {};
    if (const auto text = place.text()) return *text;
    std::string out;
    for (const auto& item : place.items()) {
        const auto text = item.text();
        if (text) out += (out.empty() ? "" : ",") + *text;
    }
    if (!place.is(json::Kind::array) || out.empty()) problems.add(place.expected("a list of hosts"));
    return out;
}

}  // namespace detail

GPUSCHED_EXPORT NetworkReading slurm_topology_from_conf(std::string_view text, std::string_view source_name) {
    const std::string source(source_name);
    require_text(text, source);
    if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
    Problems problems;
    detail::SlurmNetwork network(problems, text.size());
    std::string joined;
    std::size_t first = 0;
    for (std::size_t number = 1; !text.empty(); ++number) {
        auto line = take_line(text);
        line = line.substr(0, line.find('#'));
        while (!line.empty() && is_blank(line.back())) line.remove_suffix(1);
        if (joined.empty()) first = number;
        const bool more = line.ends_with('\\');
        if (more) line.remove_suffix(1);
        joined += line;
        if (more && !text.empty()) continue;
        detail::slurm_line(joined, concat(source, ":", first, ": "), network, problems);
        joined.clear();
    }
    return network.reading(source);
}

GPUSCHED_EXPORT NetworkReading slurm_topology_from_yaml(std::string_view text,
                                                        const SlurmTopologyOptions& options,
                                                        std::string_view source_name) {
    const std::string source(source_name);
    Problems problems;
    const auto documents = detail::read_objects(text, source, problems);
    problems.throw_if_any();
    if (documents.size() != 1 || documents.front()[0].kind != json::Kind::array)
        throw InvalidInput(source + ": expected a list of topologies, each with 'topology' and its kind");
    std::vector<detail::Place> meant;
    std::string names;
    const auto all = detail::Place(documents.front(), 0).items();
    for (const auto& item : all) {
        const auto name = item["topology"].text();
        if (!name) {
            problems.add(item.where() + "expected an object with 'topology', its name");
            continue;
        }
        names += (names.empty() ? "" : ", ") + printable(*name);
        const bool by_default = item["cluster_default"].text() == "true";
        if (options.topology.empty() ? by_default || all.size() == 1 : *name == options.topology)
            meant.push_back(item);
    }
    problems.throw_if_any();
    if (meant.size() != 1)
        throw InvalidInput(
            source + ": topology: expected the name of one of " + (names.empty() ? "none" : names) +
            (options.topology.empty() ? concat("; ", meant.size(), " are the default of the cluster")
                                      : ", found " + detail::in_quotes(options.topology)));
    const auto& topology = meant.front();
    detail::SlurmNetwork network(problems, text.size());
    std::vector<std::string> notes;
    const auto each = [&](const detail::Place& list, const char* name, const char* below, bool block) {
        if (!list.is(json::Kind::array)) problems.add(topology.where() + "expected an array of " + name);
        for (const auto& item : list.items())
            network.add(item.where(), block, item[name].text().value_or(""),
                        block ? std::string() : detail::slurm_hosts(item[below], problems),
                        detail::slurm_hosts(item["nodes"], problems));
    };
    if (topology["tree"]) {
        each(topology["tree"]["switches"], "switch", "children", false);
    } else if (topology["block"]) {
        std::vector<std::string> sizes;
        for (const auto& size : topology["block"]["block_sizes"].items())
            sizes.push_back(size.text().value_or(""));
        network.sizes(topology["block"].where(), sizes);
        each(topology["block"]["blocks"], "block", "", true);
    } else if (topology["ring"]) {
        each(topology["ring"]["rings"], "ring", "", true);
        notes.push_back("rings: each is a domain; a tree does not hold the order of its nodes");
    } else if (topology["torus3d"]) {
        each(topology["torus3d"]["toruses"], "name", "", true);
        notes.push_back("tori: each is a domain; a tree does not hold the places in it");
    } else {
        problems.add(topology.where() + (topology["flat"] ? "is flat: it has no domains"
                                                          : "expected tree, block, ring or torus3d"));
    }
    problems.throw_if_any();
    auto reading = network.reading(source);
    reading.notes = std::move(notes);
    return reading;
}

GPUSCHED_EXPORT NetworkReading read_slurm_topology(const std::string& path,
                                                   const SlurmTopologyOptions& options) {
    const auto text = read_file(path);
    const auto line = detail::slurm::first_content(text);
    const bool mapping = line.find(':') != line.npos && line.find('=') == line.npos;
    return mapping || detail::slurm::is_list(text) ? slurm_topology_from_yaml(text, options, path)
                                                   : slurm_topology_from_conf(text, path);
}

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
        else if (contains(out.node_labels, *label))
            problems.add(level.where() + in_quotes(*label) + " occurs twice");
        else if (!out.node_labels.empty() && out.node_labels.back() == hostname_label)
            problems.add(level.where() + "expected no level below " + std::string(hostname_label));
        else
            out.node_labels.push_back(*label);
    }
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
        names += (names.empty() ? "" : ", ") + detail::in_quotes(name);
        if (options.topology.empty() || options.topology == name) meant.push_back(object);
    }
    if (meant.size() != 1)
        throw InvalidInput(
            source + ": expected one object of kind Topology (kueue.x-k8s.io or kai.scheduler)" +
            (options.topology.empty() ? std::string() : " and name " + detail::in_quotes(options.topology)) +
            ", found " + (names.empty() ? "none" : names));
    auto levels = detail::topology_levels(meant.front(), problems);
    problems.throw_if_any();
    return levels;
}

GPUSCHED_EXPORT std::vector<NodeSpec> labelled_nodes_from_text(std::string_view text,
                                                               std::string_view source_name) {
    const std::string source(source_name);
    Problems problems;
    const auto documents = detail::read_objects(text, source, problems);
    problems.throw_if_any();
    std::vector<NodeSpec> out;
    std::set<std::string> seen;
    for (const auto& object : detail::kubernetes_objects(documents)) {
        if (object["kind"].text() != "Node") continue;
        NodeSpec node{.name = object["metadata"]["name"].text().value_or("")};
        if (node.name.empty())
            problems.add(object.where() + "expected metadata.name");
        else if (!seen.insert(node.name).second)
            problems.add(object.where() + "node " + detail::in_quotes(node.name) + " occurs twice");
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
                                                   std::span<const NodeSpec> nodes) {
    NetworkReading out;
    for (const auto& label : levels.node_labels)
        if (label != detail::hostname_label) out.levels.push_back(label);
    std::size_t short_paths = 0;
    std::map<std::string, std::set<std::vector<std::string>>> paths_of;  // by value: its paths from the root
    for (const auto& node : nodes) {
        NetworkReading::Node placed{.name = node.name};
        for (const auto& label : out.levels) {
            const auto found = node.labels.find(label);
            if (found == node.labels.end() || found->second.empty()) break;
            auto& path = placed.network;
            path.push_back(found->second);
            paths_of[found->second].insert(path);
        }
        short_paths += placed.network.size() < out.levels.size();
        out.nodes.push_back(std::move(placed));
    }
    // Label values have no slash, so a name with one cannot be that of another domain.
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
        out.notes.push_back(
            "domains: equal labels in different places; their names include the domains above them");
    if (short_paths > 0)
        out.notes.push_back(
            concat("nodes: ", short_paths, " lack labels of some levels and are placed above them"));
    return out;
}

GPUSCHED_EXPORT NetworkReading read_kubernetes_topology(const std::string& topology_path,
                                                        const std::string& nodes_path,
                                                        const KubernetesTopologyOptions& options) {
    const auto levels = topology_levels_from_text(read_file(topology_path), options, topology_path);
    return network_from_labels(levels, labelled_nodes_from_text(read_file(nodes_path), nodes_path));
}

}  // namespace gpusched::io
