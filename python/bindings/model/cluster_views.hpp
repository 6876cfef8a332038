// SPDX-License-Identifier: Apache-2.0
// Snapshots in Python: the cluster, and nodes and tasks as light views that keep it alive.
#pragma once

#include "support/arguments.hpp"
#include "support/values.hpp"

#include <gpusched/core/checks.hpp>
#include <gpusched/core/gpu_mask.hpp>
#include <gpusched/core/text.hpp>
#include <gpusched/model/cluster.hpp>

#include <tuple>
#include <variant>

namespace gpusched::python {

/// Clusters never change in Python, so views and arrays of them stay valid and threads may share them.
using ClusterPtr = std::shared_ptr<Cluster>;

/// Reads a snapshot as data, without building a `Cluster`, from the path of a file or a dict.
/// @throws InvalidInput with all problems; InvalidType, with these words, for other arguments
ClusterSpec read_cluster(const py::object& source, const char* argument, const char* expectation);

struct NodeView {
    ClusterPtr cluster;
    NodeId id;
    [[nodiscard]] std::size_t at() const { return index(id); }
    [[nodiscard]] const NodeTable& table() const { return cluster->inventory().nodes; }
    bool operator==(const NodeView&) const = default;
};

struct TaskView {
    ClusterPtr cluster;
    TaskId id;
    [[nodiscard]] std::size_t at() const { return index(id); }
    [[nodiscard]] const TaskTable& table() const { return cluster->inventory().tasks; }
    [[nodiscard]] const TaskAffinities& affinities() const {
        return cluster->inventory().task_affinities[table().affinities[at()]];
    }
    [[nodiscard]] const Requirement& requirement() const {
        return cluster->inventory().requirements[table().requirement[at()]];
    }
    [[nodiscard]] const Extras& extras() const { return cluster->inventory().extras[table().extras[at()]]; }
    bool operator==(const TaskView&) const = default;
};

/// All nodes (tasks) of a cluster, as a sequence of views and as columns.
struct NodeSequence {
    using View = NodeView;
    ClusterPtr cluster;
    [[nodiscard]] std::size_t size() const { return cluster->node_count(); }
    [[nodiscard]] View view(std::size_t i) const { return {cluster, make_id<NodeId>(i)}; }
    [[nodiscard]] const NameTable& names() const { return cluster->inventory().nodes.names; }
    static constexpr const char* what = "node";
};

struct TaskSequence {
    using View = TaskView;
    ClusterPtr cluster;
    [[nodiscard]] std::size_t size() const { return cluster->task_count(); }
    [[nodiscard]] View view(std::size_t i) const { return {cluster, make_id<TaskId>(i)}; }
    [[nodiscard]] const NameTable& names() const { return cluster->inventory().tasks.names; }
    static constexpr const char* what = "task";
};

/// A level as in the formats: "node" or an index.
inline py::object level_object(Level level) {
    if (level == node_level) return py::str("node");
    return py::int_(level);
}

/// Hardware as in the cluster format.
py::dict hardware_dict(const Hardware& hardware);

/// Pickles a view together with its cluster, which all views in one pickle share.
template <class View, class... Rest>
void define_view_pickling(py::class_<View, Rest...>& type) {
    define_pickling(
        type, [](const View& v) { return std::tuple(v.cluster, v.at()); },
        [](const std::tuple<ClusterPtr, std::size_t>& state) {
            const auto& [cluster, at] = state;
            const auto count = std::is_same_v<View, NodeView> ? cluster->node_count() : cluster->task_count();
            if (at >= count) throw InvalidInput(concat("position ", at, " of ", count));
            return View{cluster, make_id<decltype(View::id)>(at)};
        });
}

/// Adds the shared methods of both sequences: length, access by position, slice and name, search.
template <class Sequence, class... Rest>
void define_sequence(py::class_<Sequence, Rest...>& type) {
    type.def("__len__", &Sequence::size)
        .def("__iter__",
             [](const py::object& self) -> py::typing::Iterator<typename Sequence::View> {
                 const auto builtins = py::module_::import("builtins");
                 return py::iter(
                     builtins.attr("map")(self.attr("__getitem__"), builtins.attr("range")(py::len(self))));
             })
        .def("__getitem__",
             [](const Sequence& s, py::ssize_t i) {
                 const auto size = static_cast<py::ssize_t>(s.size());
                 if (i < -size || i >= size)
                     throw py::index_error(std::string(Sequence::what) + " index out of range");
                 return s.view(static_cast<std::size_t>(i < 0 ? i + size : i));
             })
        .def("__getitem__",
             [](const Sequence& s, const py::slice& slice) -> py::typing::List<typename Sequence::View> {
                 std::size_t start = 0, stop = 0, step = 0, count = 0;
                 if (!slice.compute(s.size(), &start, &stop, &step, &count)) throw py::error_already_set();
                 py::list result;
                 for (std::size_t i = 0; i < count; ++i, start += step) result.append(s.view(start));
                 return result;
             })
        .def("__getitem__",
             [](const Sequence& s, const std::string& name) {
                 if (const auto found = s.names().find(name)) return s.view(*found);
                 throw py::key_error("no " + std::string(Sequence::what) + " is named '" + name + "'" +
                                     did_you_mean(name, s.names()));
             })
        .def("__contains__",
             [](const Sequence& s, const std::string& name) { return s.names().find(name).has_value(); })
        .def("__contains__",
             [](const Sequence& s, const typename Sequence::View& v) { return v.cluster == s.cluster; })
        .def("__contains__", [](const Sequence&, const py::object&) { return false; })
        .def(
            "index",
            [](const Sequence& s, const std::string& name) {
                if (const auto found = s.names().find(name)) return *found;
                throw InvalidInput("no " + std::string(Sequence::what) + " is named '" + name + "'" +
                                   did_you_mean(name, s.names()));
            },
            py::arg("name"), documented("Returns the position of an entry by its name."))
        .def_property_readonly(
            "name",
            [](const Sequence& s) -> Strings {
                py::list names(s.size());
                for (std::size_t i = 0; i < s.size(); ++i) names[i] = py::str(s.names()[i]);
                return names;
            },
            "All names, in order.")
        .def("__eq__",
             [](const Sequence& s, const py::object& other) -> py::object {
                 if (!py::isinstance<Sequence>(other))
                     return py::reinterpret_borrow<py::object>(Py_NotImplemented);
                 return py::bool_(s.cluster == other.cast<const Sequence&>().cluster);
             })
        .def("__repr__", [](const Sequence& s) { return "<" + counted(s, Sequence::what) + ">"; });
    define_pickling(
        type, [](const Sequence& s) { return std::tuple(s.cluster); },
        [](const std::tuple<ClusterPtr>& state) { return Sequence{std::get<0>(state)}; });
}

}  // namespace gpusched::python
