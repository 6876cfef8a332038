// SPDX-License-Identifier: Apache-2.0
// The module gpusched.model: the cluster.
#include "model/cluster_views.hpp"
#include "model/task_argument.hpp"
#include "support/arguments.hpp"
#include "support/arrays.hpp"
#include "support/fields.hpp"

#include <gpusched/io/cluster_json.hpp>
#include <gpusched/model/feasibility.hpp>

namespace gpusched::python {

namespace {

ClusterPtr build(const ClusterSpec& spec) { return std::make_shared<Cluster>(Cluster::build(spec)); }

ClusterPtr from_json(const DocumentOrPath& source) {
    const auto spec = read_cluster(source, "source", "a dict or the path of a file");
    return unlocked([&] { return std::make_shared<Cluster>(Cluster::build(spec)); });
}

std::string text(const Cluster& cluster) { return io::cluster_to_json(cluster.to_spec(), 0); }

bool equal(const Cluster& a, const Cluster& b) {
    if (&a.inventory() == &b.inventory()) return a.same_placement(b);
    return a.node_count() == b.node_count() && a.task_count() == b.task_count() && a.to_spec() == b.to_spec();
}

std::string repr(const Cluster& c) {
    std::int64_t gpus = 0;
    std::size_t pending = 0;
    for (const auto node : c.nodes()) gpus += c.gpu_count(node);
    for (const auto task : c.tasks()) pending += !c.is_placed(task);
    return "<gpusched.Cluster: " + counted(static_cast<std::int64_t>(c.node_count()), "node") + ", " +
           counted(gpus, "GPU") + ", " + counted(static_cast<std::int64_t>(c.task_count()), "task") +
           (pending > 0 ? " (" + std::to_string(pending) + " pending)" : "") + ">";
}

}  // namespace

ClusterSpec read_cluster(const py::object& source, const char* argument, const char* expectation) {
    if (is_path(source)) {
        const auto path = path_text(source);
        return unlocked([&] { return io::read_cluster(path); });
    }
    if (!is_mapping(source)) bad_type(argument, source, expectation);
    const auto document = to_document(source, "<dict>");
    return unlocked([&] { return io::cluster_from_json(document); });
}

namespace {

py::object name_of(py::handle value) {
    if (py::isinstance<NodeView>(value) || py::isinstance<TaskView>(value)) return value.attr("name");
    return py::reinterpret_borrow<py::object>(value);
}

}  // namespace

py::object names_of(py::handle value) {
    if (py::isinstance<py::str>(value) || is_mapping(value) || !py::isinstance<py::iterable>(value))
        return name_of(value);
    py::list names;
    for (const auto item : value) names.append(name_of(item));
    return names;
}

NodeId node_of(const Cluster& cluster, const NodeArgument& node) {
    const auto* const object = std::get_if<NodeView>(&node);
    return cluster.find_node(object != nullptr ? object->cluster->name(object->id)
                                               : std::get<std::string>(node));
}

TaskId task_of(const Cluster& cluster, const TaskArgument& task) {
    const auto* const object = std::get_if<TaskView>(&task);
    return cluster.find_task(object != nullptr ? object->cluster->name(object->id)
                                               : std::get<std::string>(task));
}

// The parts of the module in other files.
void bind_nodes(py::module_& m);
void bind_tasks(py::module_& m);
void bind_plan(py::module_& m);

void bind_model(py::module_& parent) {
    auto m = submodule(parent, "model");
    py::class_<Cluster, ClusterPtr> cluster(
        m, "Cluster",
        "A snapshot of a cluster: nodes, tasks, and the placement of each task.\n\n"
        "A snapshot never changes. Calls such as `apply` return new snapshots, which share unchanged "
        "data. Threads may share a snapshot, and its arrays and views stay valid.");
    bind_nodes(m);
    bind_tasks(m);
    cluster
        .def_static("from_json", from_json, py::arg("source"),
                    documented("Reads and validates a `gpusched.cluster` document.\n\n"
                               "Parameters\n----------\nsource\n    the path of a file, or the document as a "
                               "dict\n\n"
                               "Raises\n------\nInvalidInput\n    with all problems; each names the node, "
                               "task or field\nBackendError\n    if the file cannot be read"))
        .def(
            "to_json",
            [](const Cluster& c, const py::none&) -> JsonObject {
                return parsed(unlocked([&] { return text(c); }));
            },
            py::arg("path") = py::none(),
            documented("Returns the `gpusched.cluster` document as a dict, or writes it to a file."))
        .def(
            "to_json",
            [](const Cluster& c, const PathLike& path) {
                const auto file = path_text(path);
                unlocked([&] { io::write_cluster(c.to_spec(), file); });
            },
            py::arg("path"))
        .def_property_readonly(
            "nodes", [](const ClusterPtr& c) { return NodeSequence{c}; },
            "All nodes, in the natural order of their names (n2 before n10).")
        .def_property_readonly(
            "tasks", [](const ClusterPtr& c) { return TaskSequence{c}; },
            "All tasks, in the natural order of their names.")
        .def_property_readonly(
            "now", [](const Cluster& c) { return c.inventory().now; }, "Time of the snapshot in seconds.")
        .def_property_readonly(
            "network_levels", [](const Cluster& c) { return c.inventory().network_levels(); },
            doc("Inventory::network_levels"))
        .def_property_readonly(
            "budgets",
            [](const Cluster& c) -> JsonObjects {
                py::list list;
                for (std::uint32_t b = 0; b < c.inventory().budgets.size(); ++b) {
                    if (c.inventory().budget_names[b].empty()) continue;
                    list.append(dict_from(c.budget_spec(b)));
                }
                return list;
            },
            doc("BudgetSpec"))
        .def_property_readonly(
            "label_levels",
            [](const Cluster& c) {
                std::vector<std::string> keys;
                for (const auto& level : c.inventory().label_levels) keys.push_back(level.key);
                return keys;
            },
            doc("ClusterSpec::label_levels"))
        .def_property_readonly(
            "_words",
            [](const Cluster& c) {
                const auto words = words_of(c.inventory());
                return std::map<std::string, std::string>{{"task", std::string(words.task)},
                                                          {"owner", std::string(words.owner)},
                                                          {"closed", std::string(words.closed)}};
            },
            "The words of messages: \"task\", \"owner\" and \"closed\" are task, job and drained for Slurm, "
            "else pod, owner and cordoned.")
        .def(
            "_closed_reason",
            [](const Cluster& c, const std::string& node) {
                return gpusched::detail::closed_reason(c.inventory(), c.find_node(node));
            },
            py::arg("node"),
            "The reason that Slurm gives for the state of a closed node; empty if there is none.")
        .def(
            "warnings", [](const Cluster& c) { return c.warnings(); }, documented(doc("Cluster::warnings")))
        .def(
            "copy", [](const Cluster& c) { return std::make_shared<Cluster>(c); },
            documented("Returns another snapshot with the same content."))
        .def("__copy__", [](const Cluster& c) { return std::make_shared<Cluster>(c); })
        .def(
            "__deepcopy__", [](const Cluster& c, const py::dict&) { return std::make_shared<Cluster>(c); },
            py::arg("memo"))
        .def(
            "__eq__",
            [](const Cluster& a, const Cluster& b) { return unlocked([&] { return equal(a, b); }); },
            py::is_operator())
        .def("__repr__", repr);
    define_pickling(
        cluster, [](const Cluster& c) { return py::bytes(unlocked([&] { return text(c); })); },
        [](const py::bytes& state) {
            const auto text = state.cast<std::string>();
            return unlocked([&] { return build(io::cluster_from_json(text, "<pickle>")); });
        });
    define_in_python<Frames>(cluster, "to_pandas", "_views.frames.cluster_to_pandas",
                             "Returns two pandas DataFrames, for nodes and tasks, with one row each.");
    define_in_python<ArrowTables>(
        cluster, "to_arrow", "_views.frames.cluster_to_arrow",
        "Returns two Arrow tables (pyarrow), for nodes and tasks, with one row each.");
    define_in_python<py::str>(cluster, "_repr_html_", "_views.html.cluster",
                              "The cluster as HTML, for notebooks.");
    bind_plan(m);
}

}  // namespace gpusched::python
