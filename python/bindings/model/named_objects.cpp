// Replaces `Node` and `Task` objects by their names.
#include "model/cluster_views.hpp"
#include "model/task_argument.hpp"
#include "support/documents.hpp"

#include <variant>

namespace gpusched::python {

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

}  // namespace gpusched::python
