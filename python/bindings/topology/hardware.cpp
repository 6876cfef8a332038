// SPDX-License-Identifier: Apache-2.0
// The module gpusched.topology: machines as graphs, and racks.
#include "model/cluster_views.hpp"
#include "support/documents.hpp"
#include "support/keywords.hpp"
#include "support/records.hpp"

#include <gpusched/core/gpu_mask.hpp>
#include <gpusched/io/cluster_forms.hpp>
#include <gpusched/topology/dot.hpp>
#include <gpusched/topology/racks.hpp>

namespace gpusched::python {

namespace {

using topology::HardwareGraph;
using Graph = std::shared_ptr<HardwareGraph>;

GpuMask mask_argument(const py::object& gpus) {
    GpuMask mask = 0;
    for (const auto gpu : gpu_numbers(gpus)) mask |= gpu_bit(gpu);
    return mask;
}

int gpu_number(const char* name, const Integer& gpu) {
    return read_within(name, gpu, 0, max_gpus_per_node - 1);
}

/// The GPUs of each part of the machine.
auto gpus_of_each(std::vector<GpuMask> topology::AffinityMasks::*parts) {
    return [parts](const HardwareGraph& g) -> Typed<"list[list[int]]"> {
        py::list out;
        for (const auto mask : g.masks().*parts) out.append(gpu_list(mask));
        return out;
    };
}

/// A property of some GPUs.
template <class R>
auto of_gpus(R (HardwareGraph::*property)(GpuMask) const) {
    return [property](const HardwareGraph& g, const Integers& gpus) {
        return (g.*property)(mask_argument(gpus));
    };
}

/// A property of two GPUs.
template <class R>
auto between(R (HardwareGraph::*property)(int, int) const) {
    return [property](const HardwareGraph& g, const Integer& a, const Integer& b) {
        return (g.*property)(gpu_number("a", a), gpu_number("b", b));
    };
}

JsonObjects vertices(const HardwareGraph& graph) {
    py::list out;
    for (const auto v : graph.vertices()) {
        const auto& info = graph.vertex(v);
        py::dict entry(py::arg("kind") = info.kind, py::arg("id") = info.id, py::arg("status") = info.status,
                       py::arg("used_by") = info.used_by);
        if (info.kind == topology::HardwareKind::gpu) {
            entry["uuid"] = info.uuid;
            entry["model"] = info.model;
            entry["memory_mib"] = info.memory_mib;
        }
        out.append(entry);
    }
    return out;
}

Typed<"list[tuple[int, int, str, float]]"> edges(const HardwareGraph& graph) {
    py::list out;
    for (const auto e : graph.edges())
        out.append(py::make_tuple(graph.source(e), graph.target(e), graph.edge(e).relation,
                                  graph.edge(e).bandwidth_gb_s));
    return out;
}

/// A vertex as a dict.
struct VertexDict : topology::HardwareVertex {};
template <class F>
constexpr void visit_fields(std::type_identity<VertexDict>, F&& field) {
    field("kind", &VertexDict::kind);
    field("id", &VertexDict::id);
    field("status", &VertexDict::status);
    field("used_by", &VertexDict::used_by);
    field("uuid", &VertexDict::uuid);
    field("model", &VertexDict::model);
    field("memory_mib", &VertexDict::memory_mib);
}

/// Reads a graph from its Python form.
struct DescribedGraph {
    using Vertex = std::size_t;
    using Edge = std::size_t;
    struct Link {
        Vertex a, b;
        topology::HardwareEdge edge;
    };
    std::vector<topology::HardwareVertex> infos{};
    std::vector<Link> links{};
    [[nodiscard]] std::vector<Vertex> vertices() const { return numbers(infos.size()); }
    [[nodiscard]] std::vector<Edge> edges() const { return numbers(links.size()); }
    [[nodiscard]] const topology::HardwareVertex& vertex(Vertex v) const { return infos[v]; }
    [[nodiscard]] const topology::HardwareEdge& edge(Edge e) const { return links[e].edge; }
    [[nodiscard]] Vertex source(Edge e) const { return links[e].a; }
    [[nodiscard]] Vertex target(Edge e) const { return links[e].b; }
    static std::vector<std::size_t> numbers(std::size_t count) {
        std::vector<std::size_t> all(count);
        for (std::size_t i = 0; i < count; ++i) all[i] = i;
        return all;
    }
};

Graph graph_from(const Typed<"Iterable[Mapping[str, Any]]">& vertex_list,
                 const Typed<"Iterable[tuple[int, int, str] | tuple[int, int, str, float]]">& edge_list) {
    require_list("vertices", vertex_list, "a list of dicts");
    require_list("edges", edge_list, "a list of tuples");
    DescribedGraph graph;
    for (auto& vertex : from_python<std::vector<VertexDict>>("vertices", py::list(vertex_list)))
        graph.infos.push_back(std::move(vertex));
    for (const auto item : edge_list) {
        const auto at = "edges[" + std::to_string(graph.links.size()) + "]";
        if (!py::isinstance<py::sequence>(item) || py::len(item) < 3 || py::len(item) > 4)
            bad_option(at, item, "(vertex, vertex, relation) or (vertex, vertex, relation, GB/s)");
        const auto parts = item.cast<py::sequence>();
        DescribedGraph::Link link{OptionType<std::size_t>::read(at + "[0]", parts[0]),
                                  OptionType<std::size_t>::read(at + "[1]", parts[1]),
                                  {OptionType<topology::HardwareRelation>::read(at + "[2]", parts[2])}};
        if (py::len(item) == 4) link.edge.bandwidth_gb_s = OptionType<double>::read(at + "[3]", parts[3]);
        graph.links.push_back(link);
    }
    return std::make_shared<HardwareGraph>(HardwareGraph::from_graph(graph));
}

/// Hardware as in the cluster format: the name of a preset, or a dict with its NUMA nodes.
Hardware hardware_argument(const py::object& hardware) {
    auto found = from_python<Hardware>("hardware", hardware);
    if (found.numa_nodes.empty()) bad_option("hardware", hardware, "a preset's name or a dict");
    return found;
}

void bind_graph(py::module_& m) {
    const auto text = [](const char* name) { return doc(std::string("topology::HardwareGraph::") + name); };
    py::class_<HardwareGraph, Graph> type(m, "HardwareGraph", doc("topology::HardwareGraph"));
    type.def(py::init(&graph_from), py::arg("vertices"), py::arg("edges"),
             documented("Makes a machine from a graph in the form of `vertices` and `edges`."))
        .def_static(
            "preset",
            [](const std::string& name) {
                auto graph = HardwareGraph::preset(name);
                if (!graph) throw InvalidInput(bad_name("hardware preset", name, hardware_preset_names()));
                return std::make_shared<HardwareGraph>(std::move(*graph));
            },
            py::arg("name"),
            documented(text("preset") + "\n\n"
                                        "Raises InvalidInput, with the nearest names, for unknown names."))
        .def_property_readonly(
            "gpus", [](const HardwareGraph& g) { return gpu_list(g.gpus()); }, text("gpus"))
        .def_property_readonly(
            "vertices", vertices,
            "A list of dicts: kind, id, status, used_by; for GPUs also uuid, model, memory_mib.")
        .def_property_readonly(
            "edges", edges,
            "A list of (vertex, vertex, relation, GB/s in one direction); vertices are positions.")
        .def_property_readonly(
            "healthy_gpus", [](const HardwareGraph& g) { return gpu_list(g.masks().healthy); },
            "GPUs that have not failed.")
        .def_property_readonly(
            "free_gpus", [](const HardwareGraph& g) { return gpu_list(g.masks().free); },
            "Healthy GPUs that are not held.")
        .def_property_readonly("numa_nodes", gpus_of_each(&topology::AffinityMasks::numa),
                               "The GPUs near each NUMA node, indexed by its id.")
        .def_property_readonly("sockets", gpus_of_each(&topology::AffinityMasks::socket),
                               "The GPUs of each socket, indexed by its id.")
        .def_property_readonly("pcie_roots", gpus_of_each(&topology::AffinityMasks::pcie_root),
                               "The GPUs below each PCIe root, indexed by its id.")
        .def(
            "hardware", [](const HardwareGraph& g) -> JsonObject { return hardware_dict(g.hardware()); },
            documented(text("hardware") + "\n\nReturns a dict of the cluster format."));
    type.def("distance", between(&HardwareGraph::distance), py::arg("a"), py::arg("b"),
             documented(text("distance")))
        .def("bandwidth", between(&HardwareGraph::bandwidth), py::arg("a"), py::arg("b"),
             documented(text("bandwidth")))
        .def("bottleneck_bandwidth", of_gpus(&HardwareGraph::bottleneck_bandwidth), py::arg("gpus"),
             documented(text("bottleneck_bandwidth")))
        .def("numa_node_of", of_gpus(&HardwareGraph::numa_node_of), py::arg("gpus"),
             documented("Returns the NUMA node that all of these GPUs share, or None."))
        .def("socket_of", of_gpus(&HardwareGraph::socket_of), py::arg("gpus"),
             documented("Returns the socket that all of these GPUs share, or None."))
        .def("pcie_root_of", of_gpus(&HardwareGraph::pcie_root_of), py::arg("gpus"),
             documented("Returns the PCIe root that all of these GPUs share, or None."))
        .def("locality", of_gpus(&HardwareGraph::locality), py::arg("gpus"),
             documented("Returns the locality of these GPUs: \"numa\", \"socket\" or \"cross\"."))
        .def(
            "best_gpus",
            [](const HardwareGraph& g, const Integer& wanted,
               const Typed<"Sequence[int] | None">& among) -> Typed<"list[int] | None"> {
                const auto count = OptionType<int>::read("count", wanted);
                const auto best =
                    among.is_none() ? g.best_gpus(count) : g.best_gpus(count, mask_argument(among));
                if (!best) return py::none();
                return py::cast(gpu_list(*best));
            },
            py::arg("count"), py::arg("among") = py::none(),
            documented(text("best_gpus") +
                       "\n\nReturns a list, or None. By default, chooses among the free GPUs."));
    type.def(
            "set_failed",
            [](HardwareGraph& g, const Integer& gpu, bool failed) {
                g.set_failed(gpu_number("gpu", gpu), failed);
            },
            py::arg("gpu"), py::arg("failed") = true, documented(text("set_failed")))
        .def(
            "allocate",
            [](HardwareGraph& g, const Integers& gpus, const std::string& user) {
                g.allocate(mask_argument(gpus), user);
            },
            py::arg("gpus"), py::arg("user"), documented(text("allocate")))
        .def(
            "release", [](HardwareGraph& g, const std::string& user) { return gpu_list(g.release(user)); },
            py::arg("user"), documented(text("release")))
        .def(
            "reconcile",
            [](HardwareGraph & g, const HardwareGraph& observed) -> Typed<"list[tuple[str, int]]"> {
                py::list changes;
                for (const auto& change : g.reconcile(observed))
                    changes.append(py::make_tuple(change.kind, change.gpu));
                return changes;
            },
            py::arg("observed"), documented(text("reconcile") + "\n\nReturns a list of (kind, gpu)."))
        .def("__copy__", [](const HardwareGraph& g) { return std::make_shared<HardwareGraph>(g); })
        .def(
            "__deepcopy__",
            [](const HardwareGraph& g, const py::dict&) { return std::make_shared<HardwareGraph>(g); },
            py::arg("memo"))
        .def("__repr__", [](const HardwareGraph& g) {
            const auto all = g.vertices();
            const auto count = [&](topology::HardwareKind kind) {
                return std::count_if(all.begin(), all.end(),
                                     [&](auto v) { return g.vertex(v).kind == kind; });
            };
            return "<gpusched.topology.HardwareGraph: " +
                   counted(gpu_count(g.masks().healthy), "healthy GPU") + ", " +
                   counted(count(topology::HardwareKind::numa_node), "NUMA node") + ", " +
                   counted(count(topology::HardwareKind::socket), "socket") + ">";
        });
    const auto parts = [](const HardwareGraph& g) { return py::make_tuple(vertices(g), edges(g)); };
    define_equality(type, parts);
    define_pickling(type, parts, [](const py::tuple& state) {
        if (state.size() != 2) throw InvalidInput("expected vertices and edges");
        return graph_from(state[0], state[1]);
    });
    type.attr("__hash__") = py::none();
    define_in_python<Typed<"networkx.MultiGraph">>(
        type, "to_networkx", "_views.networkx.hardware_graph",
        "Returns the machine as an undirected networkx multigraph. Vertices are positions in "
        "`vertices` with their entries as attributes; edges have the attributes kind and gb_s.");

    using H = topology::HardwareGraphOptions;
    const auto drawn = Keywords<H>().fields();
    type.def_static(
        "from_hardware",
        [drawn](const Document& hardware, const py::kwargs& keywords) {
            const auto o = drawn.read("from_hardware", keywords);
            return std::make_shared<HardwareGraph>(hardware_argument(hardware), o);
        },
        py::arg("hardware"),
        drawn.documented(
            "Makes a machine from NUMA nodes: PCIe roots are attached to NUMA nodes, and all sockets are "
            "connected.\n\n"
            "`hardware`: a node's hardware in the cluster format, a dict or the name of a preset; only "
            "its NUMA nodes are used."));

    using O = topology::HardwareDotOptions;
    const auto options = Keywords<O>().fields();
    m.def(
        "hardware_to_dot",
        [options](const HardwareGraph& graph, const py::kwargs& keywords) {
            return topology::hardware_to_dot(graph, options.read("hardware_to_dot", keywords));
        },
        py::arg("graph"), options.documented(doc("topology::hardware_to_dot")));
}

void bind_racks(py::module_& m) {
    using P = topology::RackPreset;
    bind_record<P>(m, "RackPreset");
    m.def(
        "rack_preset",
        [](const std::string& name) {
            const auto found = topology::rack_preset(name);
            if (!found) throw InvalidInput(bad_name("rack preset", name, topology::rack_preset_names()));
            return *found;
        },
        py::arg("name"),
        documented(doc("topology::rack_preset") +
                   "\n\n"
                   "Raises InvalidInput, with the nearest names, for unknown names."));
    m.def(
        "add_racks",
        [](const ClusterPtr& cluster, const P& rack, const Typed<"Sequence[str]">& nodes,
           const std::string& prefix) {
            auto spec = cluster->to_spec();
            std::vector<std::size_t> position_of(cluster->node_slots()), positions;
            for (std::size_t i = 0; i < spec.nodes.size(); ++i)
                position_of[index(cluster->find_node(spec.nodes[i].name))] = i;
            for (const auto& name : OptionType<std::vector<std::string>>::read("nodes", nodes))
                positions.push_back(position_of[index(cluster->find_node(name))]);
            topology::add_racks(spec, rack, positions, prefix);
            return std::make_shared<Cluster>(Cluster::build(spec));
        },
        py::arg("cluster"), py::arg("preset"), py::arg("nodes"), py::kw_only(), py::arg("prefix") = "",
        documented(
            "Returns a snapshot in which racks are NVLink domains. Each group of `nodes_per_rack` named "
            "nodes, in order, gets one more network domain below its own, named `prefix` and a number.\n\n"
            "Raises InvalidInput if the names do not fill the last rack, if a node has another number of "
            "GPUs, or if the nodes of a rack are in different domains."));
}

}  // namespace

void bind_hardware(py::module_& m) {
    bind_graph(m);
    bind_racks(m);
}

}  // namespace gpusched::python
