// SPDX-License-Identifier: Apache-2.0
// The module gpusched.model: nodes.
#include "model/cluster_views.hpp"
#include "support/arguments.hpp"
#include "support/arrays.hpp"
#include "support/fields.hpp"
#include "support/keywords.hpp"

#include <cstddef>

namespace gpusched::python {

namespace {

OptionalString gpu_model(const NodeView& n) {
    const auto model = n.table().gpu_model[n.at()];
    if (model == none<GpuModelId>) return py::none();
    return py::str(n.cluster->inventory().gpu_models[index(model)]);
}

Typed<"str | dict[str, Any] | None"> hardware(const NodeView& n) {
    const auto which = n.table().hardware[n.at()];
    if (which == NodeTable::no_hardware) return py::none();
    const auto& hardware = n.cluster->inventory().hardware[which].description;
    if (!hardware.preset.empty()) return py::str(hardware.preset);
    return hardware_dict(hardware);
}

std::vector<std::string> network(const NodeView& n) {
    const auto& inventory = n.cluster->inventory();
    std::vector<std::string> path;
    for (Level level = 0; level < inventory.network_depth(n.id); ++level)
        path.push_back(inventory.domain_name(level, inventory.domain(level, n.id)));
    return path;
}

Typed<"list[Task]"> tasks(const NodeView& n) {
    py::list result;
    for (const auto task : n.cluster->tasks_on(n.id)) result.append(TaskView{n.cluster, task});
    return result;
}

/// An attribute of a node, as stored.
template <class T>
auto one(std::vector<T> NodeTable::*column) {
    return [column](const NodeView& n) { return (n.table().*column)[n.at()]; };
}
template <class T>
auto stored(std::vector<T> NodeTable::*column) {
    return [column](const NodeSequence& s) { return view(s.cluster->inventory().nodes.*column, s.cluster); };
}

/// A value of a node that follows from its tasks, for one node and as a column.
template <class F>
auto of_node(F value) {
    return [value](const NodeView& n) { return value(*n.cluster, n.id); };
}
template <class F>
auto column(F value) {
    return [value](const NodeSequence& s) {
        std::vector<std::decay_t<decltype(value(*s.cluster, NodeId{}))>> values;
        values.reserve(s.size());
        for (const auto node : s.cluster->nodes()) values.push_back(value(*s.cluster, node));
        return own(std::move(values));
    };
}

const auto cpu_free_milli = [](const Cluster& c, NodeId n) { return c.cpu_free_milli(n); };
const auto memory_free_mib = [](const Cluster& c, NodeId n) { return c.memory_free_mib(n); };
const auto gpu_free = [](const Cluster& c, NodeId n) { return c.gpu_free_total_milli(n); };
const auto idle_gpu_count = [](const Cluster& c, NodeId n) { return gpu_count(c.idle_gpus(n)); };
const auto failed_gpu_count = [](const Cluster& c, NodeId n) {
    return gpu_count(c.inventory().nodes.failed_gpus[index(n)] & ~c.devices(n));
};
const auto device_count = [](const Cluster& c, NodeId n) { return gpu_count(c.devices(n)); };
const auto free_device_count = [](const Cluster& c, NodeId n) { return gpu_count(c.free_devices(n)); };
const auto occupants = [](const Cluster& c, NodeId n) { return c.occupants(n); };

std::int64_t amount_of(const Cluster& c, NodeId n, std::uint32_t resource) {
    return c.inventory().node_resources[index(n) * c.inventory().resource_names.size() + resource];
}
std::int64_t amount_free(const Cluster& c, NodeId n, std::uint32_t resource) {
    return c.resource_free(n, resource);
}
using Amount = std::int64_t (*)(const Cluster&, NodeId, std::uint32_t);

/// The named resources of a node that are not zero, with the result of `amount` for each.
std::map<std::string, std::int64_t> resource_amounts(const NodeView& n, Amount amount) {
    std::map<std::string, std::int64_t> found;
    const auto& names = n.cluster->inventory().resource_names;
    for (std::uint32_t r = 0; r < names.size(); ++r)
        if (amount_of(*n.cluster, n.id, r) > 0) found.emplace(names[r], amount(*n.cluster, n.id, r));
    return found;
}

/// A named resource of every node, with the result of `amount` for it.
auto resource_column(Amount amount) {
    return [amount](const NodeSequence& s, const std::string& name) {
        const auto& names = s.cluster->inventory().resource_names;
        const auto resource = names.find(name);
        if (!resource)
            throw InvalidInput("unknown resource " + gpusched::quoted(name) + did_you_mean(name, names));
        std::vector<std::int64_t> values;
        for (const auto node : s.cluster->nodes()) values.push_back(amount(*s.cluster, node, *resource));
        return own(std::move(values));
    };
}

}  // namespace

py::dict hardware_dict(const Hardware& hardware) {
    py::list numa_nodes;
    for (const auto& numa : hardware.numa_nodes)
        numa_nodes.append(py::dict(py::arg("socket") = numa.socket, py::arg("cores") = numa.cores,
                                   py::arg("gpus") = gpu_list(numa.gpus)));
    return py::dict(py::arg("numa_nodes") = numa_nodes);
}

void bind_nodes(py::module_& m) {
    m.def(
        "hardware_preset",
        [](const std::string& name) -> JsonObject {
            const auto preset = hardware_preset(name);
            if (!preset) throw InvalidInput(bad_name("hardware preset", name, hardware_preset_names()));
            return hardware_dict(*preset);
        },
        py::arg("name"),
        documented(
            doc("hardware_preset") +
            "\n\nReturns a dict of the cluster format. Raises InvalidInput, with the nearest names, for "
            "unknown names."));
    py::class_<NodeView> node(m, "Node", doc("NodeSpec"));
    node.def_property_readonly(
            "name", [](const NodeView& n) { return n.cluster->name(n.id); }, "Name, unique in the cluster.")
        .def_property_readonly("gpu_model", gpu_model, "GPU model, or None.")
        .def_property_readonly(
            "gpu_count", [](const NodeView& n) { return n.cluster->gpu_count(n.id); }, "0 .. 64")
        .def_property_readonly("cpu_milli", one(&NodeTable::cpu_milli), doc("NodeSpec::cpu_milli"))
        .def_property_readonly("memory_mib", one(&NodeTable::memory_mib), "In MiB.")
        .def_property_readonly(
            "gpu_memory_mib", [](const NodeView& n) -> Typed<"int | None"> {
                const auto memory = n.table().gpu_memory_mib[n.at()];
                if (memory < 0) return py::none();
                return py::int_(memory);
            },
            "GPU memory per GPU; None if unknown.")
        .def_property_readonly(
            "schedulable", [](const NodeView& n) { return !n.table().is_cordoned(make_id<NodeId>(n.at())); },
            "False for a cordoned node. It keeps its tasks, and receives only tasks that tolerate its "
            "taint `node.kubernetes.io/unschedulable`.")
        .def_property_readonly("network", network,
                               "Network domains from the root down; empty if the position is unknown.")
        .def_property_readonly(
            "labels",
            [](const NodeView& n) {
                return n.cluster->inventory().node_attributes[n.table().attributes[n.at()]].labels;
            },
            "Labels by key.")
        .def_property_readonly(
            "taints", [](const NodeView& n) -> Typed<"list[dict[str, str]]"> {
                return dicts_from(
                    n.cluster->inventory().node_attributes[n.table().attributes[n.at()]].taints);
            },
            "Taints: dicts with key, value and effect.")
        .def_property_readonly(
            "hardware", hardware,
            "Hardware: name of a preset, a description as in the cluster format, or None if unknown.")
        .def_property_readonly(
            "failed_gpus", [](const NodeView& n) { return gpu_list(n.table().failed_gpus[n.at()]); },
            "Failed GPUs and other devices.")
        .def_property_readonly("eviction_count", one(&NodeTable::eviction_count),
                               doc("NodeSpec::eviction_count"))
        .def_property_readonly(
            "resources", [](const NodeView& n) { return resource_amounts(n, amount_of); },
            "Named resources of the node.")
        .def_property_readonly(
            "resources_free", [](const NodeView& n) { return resource_amounts(n, amount_free); },
            "Free amounts of the named resources.")
        .def_property_readonly(
            "devices",
            [](const NodeView& n) -> JsonObjects {
                return dicts_from(n.cluster->inventory().node_devices[n.table().devices[n.at()]].written);
            },
            doc("NodeSpec::devices"))
        .def_property_readonly(
            "free_devices", [](const NodeView& n) { return gpu_list(n.cluster->free_devices(n.id)); },
            doc("Cluster::free_devices"))
        .def_property_readonly("failed_gpu_count", of_node(failed_gpu_count), "Number of failed GPUs.")
        .def_property_readonly("tasks", tasks, doc("Cluster::tasks_on"))
        .def_property_readonly("occupants", of_node(occupants),
                               "Number of tasks on the node, without daemons.")
        .def_property_readonly("cpu_free_milli", of_node(cpu_free_milli), "Free cores in thousandths.")
        .def_property_readonly("memory_free_mib", of_node(memory_free_mib), "Free memory in MiB.")
        .def_property_readonly("gpu_free_milli", of_node(gpu_free),
                               "Free GPUs in thousandths, summed over healthy GPUs.")
        .def_property_readonly(
            "idle_gpus", [](const NodeView& n) { return gpu_list(n.cluster->idle_gpus(n.id)); },
            doc("Cluster::idle_gpus"))
        .def_property_readonly("idle_gpu_count", of_node(idle_gpu_count),
                               "Number of completely free, healthy GPUs.")
        .def(
            "__eq__", [](const NodeView& a, const NodeView& b) { return a == b; }, py::is_operator())
        .def("__hash__", [](const NodeView& n) { return std::hash<std::size_t>{}(n.at()); })
        .def("__repr__", [](const NodeView& n) {
            const auto model = gpu_model(n);
            const auto failed = failed_gpu_count(*n.cluster, n.id);
            return "<gpusched.Node '" + n.cluster->name(n.id) +
                   "': " + std::to_string(n.cluster->gpu_count(n.id)) + " x " +
                   (model.is_none() ? std::string("GPU") : model.cast<std::string>()) + ", " +
                   counted(n.cluster->occupants(n.id), "task") +
                   (failed > 0 ? ", " + counted(failed, "failed GPU") : "") +
                   (!n.table().is_cordoned(make_id<NodeId>(n.at())) ? ">" : ", unschedulable>");
        });

    define_view_pickling(node);

    py::class_<NodeSequence> nodes(
        m, "Nodes",
        "All nodes of a cluster: a sequence with access by position or name. Attributes are read-only "
        "arrays.");
    define_sequence(nodes);
    nodes
        .def_property_readonly(
            "gpu_model", [](const NodeSequence& s) -> Typed<"list[str | None]"> {
                const auto& inventory = s.cluster->inventory();
                py::list models;
                for (std::size_t i = 0; i < inventory.gpu_models.size(); ++i)
                    models.append(py::str(inventory.gpu_models[i]));
                py::list column(s.size());
                for (std::size_t i = 0; i < s.size(); ++i) {
                    const auto model = inventory.nodes.gpu_model[i];
                    column[i] =
                        model == none<GpuModelId> ? py::object(py::none()) : py::object(models[index(model)]);
                }
                return column;
            },
            "GPU model of every node, or None.")
        .def(
            "domain", [](const NodeSequence& s, const LevelLike& which) -> Typed<"list[str | None]"> {
                const auto& inventory = s.cluster->inventory();
                const auto level = read_level("level", which);
                if (level == node_level) return py::cast(s).attr("name");
                if (level >= inventory.network_levels())
                    throw py::index_error("the network has " + std::to_string(inventory.network_levels()) +
                                          " levels");
                py::list column(s.size());
                for (std::size_t i = 0; i < s.size(); ++i) {
                    const auto at = make_id<NodeId>(i);
                    if (inventory.position_known(level, at))
                        column[i] = py::str(inventory.domain_name(level, inventory.domain(level, at)));
                    else
                        column[i] = py::none();
                }
                return column;
            },
            py::arg("level"),
            documented("Returns the network domain of every node at a level, or None "
                       "if unknown; at \"node\" its own name."))
        .def_property_readonly("gpu_count", stored(&NodeTable::gpu_count), "Number of GPUs of every node.")
        .def_property_readonly("cpu_milli", stored(&NodeTable::cpu_milli), "Thousandths of a core.")
        .def_property_readonly("memory_mib", stored(&NodeTable::memory_mib), "Memory in MiB.")
        .def_property_readonly(
            "schedulable",
            [](const NodeSequence& s) {
                const auto& column = s.cluster->inventory().nodes.cordon;
                const auto free = std::make_shared<std::vector<std::uint8_t>>(column.size());
                std::transform(column.begin(), column.end(), free->begin(),
                               [](Cordon cordon) { return cordon == Cordon::none; });
                return flags(*free, free);
            },
            "False for cordoned nodes.")
        .def_property_readonly("failed_gpu_mask", stored(&NodeTable::failed_gpus),
                               "Bit masks of failed GPUs and other devices: bit i is GPU i.")
        .def_property_readonly("eviction_count", stored(&NodeTable::eviction_count),
                               "Number of tasks evicted from every node so far.")
        .def_property_readonly(
            "resource_names",
            [](const NodeSequence& s) {
                const auto& known = s.cluster->inventory().resource_names;
                std::vector<std::string> names;
                for (std::size_t r = 0; r < known.size(); ++r) names.push_back(known[r]);
                return names;
            },
            "Names of the resources that nodes have or tasks request.")
        .def("resource", resource_column(amount_of), py::arg("name"),
             documented("Returns the amount of a named resource on every node."))
        .def("resource_free", resource_column(amount_free), py::arg("name"),
             documented("Returns the free amount of a named resource on every node."))
        .def_property_readonly("device_count", column(device_count),
                               "Number of devices that are not whole GPUs.")
        .def_property_readonly("free_device_count", column(free_device_count),
                               "Number of these devices that are healthy and free.")
        .def_property_readonly("failed_gpu_count", column(failed_gpu_count), "Number of failed GPUs.")
        .def_property_readonly("idle_gpu_mask",
                               column([](const Cluster& c, NodeId n) { return c.idle_gpus(n); }),
                               "Bit masks of completely free, healthy GPUs: bit i is GPU i.")
        .def_property_readonly("idle_gpu_count", column(idle_gpu_count),
                               "Number of completely free, healthy GPUs.")
        .def_property_readonly("occupants", column(occupants), "Number of tasks, without daemons.")
        .def_property_readonly("cpu_free_milli", column(cpu_free_milli), "Free cores in thousandths.")
        .def_property_readonly("memory_free_mib", column(memory_free_mib), "Free memory in MiB.")
        .def_property_readonly("gpu_free_milli", column(gpu_free), "Free GPUs in thousandths.");
}

}  // namespace gpusched::python
