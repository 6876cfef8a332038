// SPDX-License-Identifier: Apache-2.0
// The module gpusched.io: readers of machines and networks.
#include "model/cluster_views.hpp"
#include "support/documents.hpp"
#include "support/keywords.hpp"
#include "support/records.hpp"
#include "support/values.hpp"

#include <gpusched/io/hardware_files.hpp>
#include <gpusched/io/network_files.hpp>
#include <gpusched/io/node_resource_topology.hpp>
#include <gpusched/json/document.hpp>

namespace gpusched::python {

namespace {

using topology::HardwareGraph;
using Graph = std::shared_ptr<HardwareGraph>;

template <class Options, class Read>
void bind_reader(py::module_& m, const char* name, const Options& options, Read read) {
    m.def(
        name,
        [name, options, read](const PathLike& path, const py::kwargs& keywords) {
            const auto given = options.read(name, keywords);
            const auto file = path_text(path);
            return unlocked([&] { return read(file, given); });
        },
        py::arg("path"), options.documented(doc(std::string("io::") + name)));
}

void bind_results(py::module_& m) {
    const auto machine = [](const io::HardwareReading& r) {
        return std::tuple(std::make_shared<HardwareGraph>(r.graph), r.notes);
    };
    py::class_<io::HardwareReading> hardware(m, "HardwareReading", doc("io::HardwareReading"));
    define_value(hardware, machine, [](const std::tuple<Graph, std::vector<std::string>>& state) {
        return io::HardwareReading{*std::get<0>(state), std::get<1>(state)};
    });
    hardware
        .def_property_readonly(
            "graph", [](const io::HardwareReading& r) { return std::make_shared<HardwareGraph>(r.graph); },
            "The machine: a new copy at every access, because it can be changed.")
        .def_readonly("notes", &io::HardwareReading::notes, doc("io::HardwareReading::notes"))
        .def("__repr__", [](const io::HardwareReading& r) {
            return "<gpusched.io.HardwareReading: " + counted(gpu_count(r.graph.masks().healthy), "GPU") +
                   ", " + counted(r.notes, "note") + ">";
        });
    using N = io::NetworkReading;
    using Strings = std::vector<std::string>;
    using Positions = std::vector<std::pair<std::string, Strings>>;
    const auto positions = [](const N& r) {
        Positions nodes;
        for (const auto& node : r.nodes) nodes.emplace_back(node.name, node.network);
        return nodes;
    };
    py::class_<N> network(m, "NetworkReading", doc("io::NetworkReading"));
    define_value(
        network, [positions](const N& r) { return std::tuple(positions(r), r.levels, r.notes); },
        [](const std::tuple<Positions, Strings, Strings>& state) {
            N r{.nodes = {}, .levels = std::get<1>(state), .notes = std::get<2>(state)};
            for (const auto& [name, path] : std::get<0>(state)) r.nodes.push_back({name, path});
            return r;
        });
    network
        .def_property_readonly(
            "nodes", positions,
            "A list of (name, [domains from the root down]); no domains if the position is unknown.")
        .def_readonly("levels", &N::levels, doc("io::NetworkReading::levels"))
        .def_readonly("notes", &N::notes, doc("io::NetworkReading::notes"))
        .def("__repr__",
             [](const N& r) { return "<gpusched.io.NetworkReading: " + counted(r.nodes, "node") + ">"; });
}

void bind_node_resources(py::module_& m, const Keywords<io::HardwareReadOptions>& hardware) {
    using A = io::ResourceAmount;
    using N = io::NumaResources;
    using R = io::NodeResources;
    const auto of = [](const char* name) { return doc(std::string("io::") + name); };
    bind_record<A>(m, "ResourceAmount");
    bind_record<N>(m, "NumaResources");
    bind_record<R>(m, "NodeResources");
    m.def(
        "read_node_resource_topology",
        [](const PathLike& path) {
            const auto file = path_text(path);
            return unlocked([&] { return io::read_node_resource_topology(file); });
        },
        py::arg("path"), documented(of("read_node_resource_topology")));
    m.def(
        "machine_of",
        [hardware](const R& resources, const py::kwargs& keywords) {
            const auto given = hardware.read("machine_of", keywords);
            return unlocked([&] { return io::machine_of(resources, given); });
        },
        py::arg("node"), hardware.documented(of("machine_of")));
}

}  // namespace

void bind_readings(py::module_& m) {
    bind_results(m);
    using H = io::HardwareReadOptions;
    const auto hardware = Keywords<H>().fields();
    bind_reader(m, "read_hardware", hardware, io::read_hardware);
    bind_reader(m, "read_nvidia_smi_topo", hardware, io::read_nvidia_smi_topo);
    bind_reader(m, "read_nccl_topology", hardware, io::read_nccl_topology);
    bind_reader(m, "read_hwloc", hardware, io::read_hwloc);
    bind_reader(m, "read_flextopo", hardware, io::read_flextopo);
    m.def(
        "flextopo_to_json",
        [](const HardwareGraph& graph, const std::string& name) -> JsonObject {
            return parsed(io::flextopo_to_json(graph, name));
        },
        py::arg("graph"), py::arg("name"), documented(doc("io::flextopo_to_json")));
    hardware.def(
        m, "read_this_machine",
        [](const H& given, const std::string& library) {
            return unlocked([&] { return io::read_this_machine(given, library); });
        },
        doc("io::read_this_machine"), py::kw_only(), py::arg("library") = "libhwloc.so.15");
    bind_node_resources(m, hardware);
    using S = io::SlurmTopologyOptions;
    bind_reader(m, "read_slurm_topology", Keywords<S>().fields(), io::read_slurm_topology);
    using K = io::KubernetesTopologyOptions;
    Keywords<K>().fields().def(
        m, "read_kubernetes_topology",
        [](const K& given, const PathLike& topology_path, const PathLike& nodes_path) {
            const auto levels = path_text(topology_path, "topology_path");
            const auto nodes = path_text(nodes_path, "nodes_path");
            return unlocked([&] { return io::read_kubernetes_topology(levels, nodes, given); });
        },
        doc("io::read_kubernetes_topology"), py::arg("topology_path"), py::arg("nodes_path"));
    m.def(
        "network_tree", [](const io::NetworkReading& reading) -> Typed<"NetworkTree"> {
            ClusterSpec spec;
            for (const auto& node : reading.nodes) {
                spec.nodes.emplace_back().name = node.name;
                spec.nodes.back().network = node.network;
            }
            return py::module_::import("gpusched.topology")
                .attr("NetworkTree")(std::make_shared<Cluster>(Cluster::build(spec)));
        },
        py::arg("reading"), documented(doc("io::network_tree")));
    m.def(
        "set_network",
        [](const ClusterPtr& cluster, const io::NetworkReading& reading) {
            auto spec = cluster->to_spec();
            io::set_network(spec, reading);
            return std::make_shared<Cluster>(Cluster::build(spec));
        },
        py::arg("cluster"), py::arg("reading"),
        documented(
            "Returns a snapshot in which the nodes of the reading have its domains; others keep theirs."));
    m.def("reads_xml", io::reads_xml, documented(doc("io::reads_xml")));
    m.def("reads_yaml", json::reads_yaml, documented(doc("json::reads_yaml")));
}

}  // namespace gpusched::python
