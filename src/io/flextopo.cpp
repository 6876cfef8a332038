// SPDX-License-Identifier: Apache-2.0
// Reads and writes FlexTopo objects.
#include "io/documents.hpp"
#include "io/hardware_parts.hpp"

#include <gpusched/config.hpp>
#include <gpusched/core/errors.hpp>
#include <gpusched/core/file.hpp>
#include <gpusched/core/text.hpp>
#include <gpusched/io/hardware_files.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace gpusched::io {

namespace detail {

/// A kind of vertex: the collector's type, and the prefix of its ids. The object has no others.
struct FlexTopoVertex {
    topology::HardwareKind of;
    std::string_view type, prefix;
};
static constexpr FlexTopoVertex flextopo_vertices[] = {
    {topology::HardwareKind::socket, "Socket", "socket-"},
    {topology::HardwareKind::numa_node, "NUMANode", "numa-"},
    {topology::HardwareKind::core_group, "CoreGroup", "coregroup-"},
    {topology::HardwareKind::core, "CPUCore", "core-"},
    {topology::HardwareKind::gpu, "GPU", "gpu-"},
};

/// Reads the vertices and edges of an object.
class FlexTopoReader {
  public:
    FlexTopoReader(const Place& object, std::string source, const HardwareReadOptions& options,
                   Problems& problems, std::vector<std::string>& notes)
        : source_(std::move(source)), options_(options), problems_(problems), notes_(notes) {
        const auto nodes = object["spec"]["nodes"], edges = object["spec"]["edges"];
        if (!nodes.is(json::Kind::array)) problems_.add(object.where() + "expected spec.nodes, an array");
        if (edges && !edges.is(json::Kind::array)) problems_.add(edges.expected("an array"));
        for (const auto& node : nodes.items()) read_vertex(node);
        number_groups();
        problems_.throw_if_any();
        for (const auto& edge : edges.items()) read_edge(edge);
        problems_.throw_if_any();
    }

    HardwareParts machine() {
        using Relation = topology::HardwareRelation;
        HardwareParts parts;
        for (const auto& item : items_) {
            const auto v = parts.add(item.vertex.kind, item.vertex.id);
            parts.at(v) = item.vertex;
        }
        spread_gpus();
        std::vector<std::size_t> sockets;
        std::set<std::size_t> with_groups;
        for (std::size_t i = 0; i < items_.size(); ++i) {
            auto& item = items_[i];
            switch (item.vertex.kind) {
            case Kind::socket:
                if (sockets.size() == HardwareParts::most_sockets)
                    throw InvalidInput(
                        concat(source_, ": expected at most ", HardwareParts::most_sockets, " sockets"));
                for (const auto other : sockets)
                    parts.join(other, i, Relation::interconnect, options_.interconnect_gb_s);
                sockets.push_back(i);
                break;
            case Kind::core_group:
                if (!item.numa) {
                    report(item, "is localized to no NUMA node");
                    break;
                }
                if (!item.socket) item.socket = items_[*item.numa].socket;
                if (!item.socket) {
                    report(item, "is in no socket");
                    break;
                }
                with_groups.insert(*item.numa);
                parts.join(*item.socket, i, Relation::hosts);
                parts.join(i, *item.numa, Relation::localized);
                break;
            case Kind::core:
                if (item.group)
                    parts.join(*item.group, i, Relation::contains);
                else
                    report(item, "is in no core group");
                break;
            case Kind::gpu:
                if (item.numa) parts.join(i, *item.numa, Relation::nearby, options_.pcie_gb_s);
                break;
            default:
                break;
            }
        }
        for (std::size_t i = 0; i < items_.size(); ++i)
            if (items_[i].vertex.kind == Kind::numa_node && items_[i].socket && !with_groups.contains(i))
                parts.join(*items_[i].socket, i, Relation::hosts);
        problems_.throw_if_any();
        return parts;
    }

  private:
    using Kind = topology::HardwareKind;
    struct Item {
        std::string id{};
        topology::HardwareVertex vertex{};
        std::optional<std::size_t> socket{}, numa{}, group{};
    };

    void report(const Item& item, const std::string& what) {
        problems_.add(source_ + ": " + in_quotes(item.id) + " " + what);
    }

    /// A name for comparisons: small letters and digits only.
    static std::string plain(std::string_view name) {
        std::string out;
        for (const char c : name) {
            if (c >= 'A' && c <= 'Z') out += static_cast<char>(c - 'A' + 'a');
            if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) out += c;
        }
        return out;
    }

    static std::optional<Kind> kind_of(std::string_view type) {
        const auto name = plain(type);
        if (name == "cpucoregroup") return Kind::core_group;
        for (const auto& row : flextopo_vertices)
            if (name == plain(row.type) || name == plain(row.prefix)) return row.of;
        return std::nullopt;
    }

    void read_vertex(const Place& node) {
        const auto id = node["id"].text(), type = node["type"].text();
        if (!id || !type) return problems_.add(node.where() + "expected an object with id and type");
        const auto kind = kind_of(*type);
        if (!kind) return problems_.add(node["type"].expected("Socket, NUMANode, CoreGroup, CPUCore or GPU"));
        Item item{.id = *id};
        item.vertex.kind = *kind;
        int number = -1;
        if (!read_number(trailing_digits(*id), number) || number > 65535)
            return problems_.add(node["id"].expected("a name that ends in a number up to 65535"));
        item.vertex.id = number;
        read_attributes(node["attributes"], item.vertex);
        if (!index_.emplace(*id, items_.size()).second)
            return problems_.add(node.where() + in_quotes(*id) + " occurs twice");
        items_.push_back(std::move(item));
    }

    void read_attributes(const Place& attributes, topology::HardwareVertex& vertex) {
        if (!attributes) return;
        if (!attributes.is(json::Kind::object)) return problems_.add(attributes.expected("an object"));
        std::optional<std::string> status;
        for (const auto& attribute : attributes.items()) {
            const auto name = plain(attribute.key());
            const auto value = attribute.text();
            if (attribute.kind() == json::Kind::null) continue;
            if (name == "status") {
                const auto& said = status.emplace(value ? plain(*value) : "");
                if (said != "free" && said != "used" && said != "allocated" && said != "failed" &&
                    said != "unhealthy")
                    problems_.add(attribute.expected("free, used, allocated, failed or unhealthy"));
            } else if (name == "usedby") {
                if (!value) problems_.add(attribute.expected("a name"));
                vertex.used_by = value.value_or("");
            } else if (vertex.kind == Kind::gpu && name == "uuid") {
                vertex.uuid = value.value_or("");
            } else if (vertex.kind == Kind::gpu && (name == "name" || name == "model")) {
                vertex.model = value.value_or("");
            } else if (vertex.kind == Kind::gpu &&
                       (name == "memorytotal" || name == "memory" || name == "memorymib")) {
                const auto mib = attribute.number();
                if (mib && *mib >= 0 && *mib < 1e12)
                    vertex.memory_mib = static_cast<std::int64_t>(*mib);
                else
                    problems_.add(attribute.expected("MiB, a number from 0"));
            }
        }
        const bool used = status ? *status == "used" || *status == "allocated" : !vertex.used_by.empty();
        const bool failed = status && (*status == "failed" || *status == "unhealthy");
        vertex.status = failed ? topology::HardwareStatus::failed
                        : used ? topology::HardwareStatus::allocated
                               : topology::HardwareStatus::free;
        if (!used && !failed) vertex.used_by.clear();
    }

    /// Numbers groups again if their numbers repeat, because they count within NUMA nodes.
    void number_groups() {
        std::set<int> seen;
        bool twice = false;
        for (const auto& item : items_)
            twice = twice || (item.vertex.kind == Kind::core_group && !seen.insert(item.vertex.id).second);
        int next = 0;
        for (const auto& [id, at] : index_)
            if (twice && items_[at].vertex.kind == Kind::core_group) items_[at].vertex.id = next++;
    }

    void read_edge(const Place& edge) {
        std::size_t ends[2] = {};
        for (int e = 0; e < 2; ++e) {
            const auto* const key = e == 0 ? "source" : "target";
            const auto name = edge[key].text();
            if (!name) return problems_.add(edge.where() + "expected an object with source and target");
            const auto found = index_.find(*name);
            if (found == index_.end()) return problems_.add(edge[key].expected("the id of a node"));
            ends[e] = found->second;
        }
        const auto join = [&](Kind above, Kind below, std::optional<std::size_t> Item::*member) {
            for (int e = 0; e < 2; ++e) {
                const auto top = ends[e], low = ends[1 - e];
                if (items_[top].vertex.kind != above || items_[low].vertex.kind != below) continue;
                auto& slot = items_[low].*member;
                if (slot && *slot != top)
                    problems_.add(edge.where() + in_quotes(items_[low].id) + " belongs to " +
                                  in_quotes(items_[*slot].id) + " already");
                slot = top;
                return true;
            }
            return false;
        };
        // A core's own NUMA node adds nothing to that of its group.
        if (join(Kind::socket, Kind::numa_node, &Item::socket) ||
            join(Kind::socket, Kind::core_group, &Item::socket) ||
            join(Kind::numa_node, Kind::core_group, &Item::numa) ||
            join(Kind::core_group, Kind::core, &Item::group) ||
            join(Kind::numa_node, Kind::gpu, &Item::numa) || join(Kind::numa_node, Kind::core, &Item::numa))
            return;
        problems_.add(edge.where() + "expected vertices that belong together, found " +
                      in_quotes(items_[ends[0]].id) + " and " + in_quotes(items_[ends[1]].id));
    }

    void spread_gpus() {
        std::map<int, std::size_t> gpus, numa;
        bool known = false;
        for (std::size_t i = 0; i < items_.size(); ++i) {
            auto& item = items_[i];
            if (item.vertex.kind == Kind::gpu) {
                gpus[item.vertex.id] = i;
                known = known || item.numa;
            }
            if (item.vertex.kind == Kind::numa_node) numa[item.vertex.id] = i;
            // Some edges give the NUMA node of a group only through its cores.
            if (item.vertex.kind == Kind::core && item.group && item.numa && !items_[*item.group].numa)
                items_[*item.group].numa = item.numa;
        }
        const bool missing = std::ranges::any_of(gpus, [&](const auto& g) { return !items_[g.second].numa; });
        if (known) {
            if (missing) notes_.push_back("GPUs: some have no edge and count as near no NUMA node");
            return;
        }
        if (gpus.empty() || numa.empty()) return;
        std::size_t position = 0;
        for (const auto& [id, at] : gpus)
            items_[at].numa =
                std::next(numa.begin(), static_cast<std::ptrdiff_t>(position++ * numa.size() / gpus.size()))
                    ->second;
        notes_.push_back("GPUs: none has an edge; they are spread over the NUMA nodes by number");
    }

    std::string source_;
    const HardwareReadOptions& options_;
    Problems& problems_;
    std::vector<std::string>& notes_;
    std::vector<Item> items_;
    std::map<std::string, std::size_t> index_;
};

}  // namespace detail

GPUSCHED_EXPORT HardwareReading flextopo_from_text(std::string_view text, const HardwareReadOptions& options,
                                                   std::string_view source_name) {
    const std::string source(source_name);
    require_fields(options);
    Problems problems;
    const auto documents = detail::read_objects(text, source, problems);
    std::vector<detail::Place> found;
    std::string others;
    for (const auto& object : detail::kubernetes_objects(documents)) {
        const auto kind = object["kind"].text();
        if (kind == "FlexTopo")
            found.push_back(object);
        else
            others +=
                (others.empty() ? "" : ", ") + (kind ? printable(*kind) : std::string("something else"));
    }
    if (found.size() != 1)
        problems.add(source + ": expected one object of kind FlexTopo, found " +
                     (!found.empty()   ? std::to_string(found.size())
                      : others.empty() ? std::string("nothing")
                                       : others));
    problems.throw_if_any();
    std::vector<std::string> notes;
    const auto parts = detail::FlexTopoReader(found.front(), source, options, problems, notes).machine();
    return {detail::finish(parts, source), std::move(notes)};
}

GPUSCHED_EXPORT HardwareReading read_flextopo(const std::string& path, const HardwareReadOptions& options) {
    return flextopo_from_text(read_file(path), options, path);
}

namespace detail {

/// A relation: its name in Table 2, and the kind of vertex at the end of its edges. The object has no others.
struct FlexTopoEdge {
    topology::HardwareRelation of;
    std::string_view type;
    topology::HardwareKind to;
};
static constexpr FlexTopoEdge flextopo_edges[] = {
    {topology::HardwareRelation::hosts, "host", topology::HardwareKind::core_group},
    {topology::HardwareRelation::contains, "contain", topology::HardwareKind::core},
    {topology::HardwareRelation::localized, "localized", topology::HardwareKind::numa_node},
    {topology::HardwareRelation::nearby, "nearby", topology::HardwareKind::numa_node},
};

/// The row of a table for a kind of vertex or a relation; null if it has none.
template <class Row, std::size_t N, class Key>
const Row* row_of(const Row (&table)[N], Key key) {
    const auto* const found = std::ranges::find(table, key, &Row::of);
    return found == std::end(table) ? nullptr : found;
}

static std::string flextopo_id(const topology::HardwareVertex& vertex) {
    return concat(row_of(flextopo_vertices, vertex.kind)->prefix, vertex.id);
}

static std::string flextopo_vertex(const topology::HardwareVertex& vertex, std::string_view type) {
    using K = topology::HardwareKind;
    using S = topology::HardwareStatus;
    std::string attributes;
    const auto add = [&](std::string_view key, const std::string& value) {
        attributes += concat(attributes.empty() ? "\"" : ", \"", key, "\": ", value);
    };
    if (vertex.kind == K::gpu && vertex.memory_mib > 0) add("memoryTotal", std::to_string(vertex.memory_mib));
    if (vertex.kind == K::gpu && !vertex.model.empty()) add("name", json_string(vertex.model));
    if (vertex.kind == K::gpu || vertex.kind == K::core || vertex.kind == K::core_group)
        add("status", vertex.status == S::failed      ? "\"failed\""
                      : vertex.status == S::allocated ? "\"used\""
                                                      : "\"free\"");
    if (!vertex.used_by.empty()) add("usedBy", json_string(vertex.used_by));
    if (vertex.kind == K::gpu && !vertex.uuid.empty()) add("uuid", json_string(vertex.uuid));
    return concat(R"({"id": ")", flextopo_id(vertex), R"(", "type": ")", type, R"(", "attributes": {)",
                  attributes, "}}");
}

}  // namespace detail

GPUSCHED_EXPORT std::string flextopo_to_json(const topology::HardwareGraph& graph, std::string_view name) {
    if (!detail::is_kubernetes_name(name))
        throw InvalidInput("name: " + detail::in_quotes(name) + "; expected a name as Kubernetes accepts it");
    std::string nodes, edges;
    const auto add = [](std::string& list, const std::string& entry) {
        list += (list.empty() ? "\n  " : ",\n  ") + entry;
    };
    for (const auto v : graph.vertices()) {
        const auto& vertex = graph.vertex(v);
        if (const auto* const row = detail::row_of(detail::flextopo_vertices, vertex.kind))
            add(nodes, detail::flextopo_vertex(vertex, row->type));
    }
    for (const auto e : graph.edges()) {
        const auto* const row = detail::row_of(detail::flextopo_edges, graph.edge(e).relation);
        if (row == nullptr) continue;
        const auto *a = &graph.vertex(graph.source(e)), *b = &graph.vertex(graph.target(e));
        // Sockets may also host NUMA nodes: then the socket is the source.
        if (a->kind == row->to || b->kind == topology::HardwareKind::socket) std::swap(a, b);
        add(edges, concat(R"({"source": ")", detail::flextopo_id(*a), R"(", "target": ")",
                          detail::flextopo_id(*b), R"(", "type": ")", row->type, R"("})"));
    }
    return concat(
        R"({"apiVersion": "flextopo.baichuan-inc.com/v1alpha1", "kind": "FlexTopo", "metadata": {"name": )",
        detail::json_string(name), "},\n \"spec\": {\"nodes\": [", nodes, "],\n \"edges\": [", edges,
        "]}}\n");
}

}  // namespace gpusched::io
