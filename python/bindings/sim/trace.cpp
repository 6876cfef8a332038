// SPDX-License-Identifier: Apache-2.0
// The module gpusched.sim: traces.
#include "model/trace.hpp"

#include "support/arguments.hpp"
#include "support/arrays.hpp"
#include "support/documents.hpp"
#include "support/keywords.hpp"
#include "support/values.hpp"

#include <gpusched/core/checks.hpp>
#include <gpusched/core/fields.hpp>
#include <gpusched/io/cluster_json.hpp>
#include <gpusched/model/cluster.hpp>

#include <cmath>
#include <limits>
#include <span>
#include <tuple>

namespace gpusched::python {

namespace {

/// Seconds, with NaN for an absent time, as in numpy and pandas.
double seconds(const std::optional<std::int64_t>& time) {
    return time ? static_cast<double>(*time) : std::numeric_limits<double>::quiet_NaN();
}

template <class F>
py::list list_of(const Trace& trace, F value) {
    py::list column(trace.tasks.size());
    for (std::size_t i = 0; i < trace.tasks.size(); ++i) column[i] = value(trace.tasks[i]);
    return column;
}

template <class F>
auto array_of(const Trace& trace, F value) {
    std::vector<decltype(value(TraceTask{}))> column;
    column.reserve(trace.tasks.size());
    for (const auto& task : trace.tasks) column.push_back(value(task));
    return own(std::move(column));
}

/// The columns of the task table, in order.
py::dict task_columns(const Trace& trace) {
    py::dict columns;
    columns["name"] = list_of(trace, [](const TraceTask& t) { return py::str(t.task.name); });
    columns["cpu_milli"] = array_of(trace, [](const TraceTask& t) { return t.task.cpu_milli; });
    columns["memory_mib"] = array_of(trace, [](const TraceTask& t) { return t.task.memory_mib; });
    columns["gpu_count"] = array_of(trace, [](const TraceTask& t) { return t.task.gpu_count; });
    columns["gpu_share_milli"] = array_of(trace, [](const TraceTask& t) { return t.task.gpu_share_milli; });
    columns["gpu_models"] = list_of(trace, [](const TraceTask& t) {
        std::string models;
        for (const auto& model : t.task.gpu_models) models += (models.empty() ? "" : "|") + model;
        return py::str(models);
    });
    columns["priority_class"] =
        list_of(trace, [](const TraceTask& t) { return py::cast(t.task.priority_class); });
    columns["creation_time"] = array_of(trace, [](const TraceTask& t) { return t.creation_time; });
    columns["deletion_time"] = array_of(trace, [](const TraceTask& t) { return seconds(t.deletion_time); });
    columns["scheduled_time"] = array_of(trace, [](const TraceTask& t) { return seconds(t.scheduled_time); });
    return columns;
}

/// Reads entries of a list of dicts: fields of the cluster format, and all other keys as columns.
struct Entries {
    py::list known{};
    py::dict others{};
};

/// @param take gets every key first; true = the key is neither a field of the format nor a column
template <class Take>
Entries read_entries(const char* list, py::handle given, std::span<const std::string_view> keys,
                     Problems& problems, Take take) {
    require_list(list, given, "a list of dicts");
    Entries out;
    std::size_t at = 0;
    for (const auto item : given) {
        const auto owner = std::string(list) + "[" + std::to_string(at) + "]";
        py::dict known;
        const auto read = [&](py::handle key, py::handle value) {
            const auto name = OptionType<std::string>::read(owner + ", a key", key);
            if (take(name, owner, value)) return;
            if (std::find(keys.begin(), keys.end(), name) != keys.end()) {
                known[key] = value;
                return;
            }
            if (!out.others.contains(key)) out.others[key] = py::list();
            py::list column = out.others[key];
            while (column.size() < at) column.append(py::none());
            const bool absent = PyFloat_Check(value.ptr()) && std::isnan(value.cast<double>());
            column.append(absent ? py::none() : py::reinterpret_borrow<py::object>(value));
        };
        if (is_mapping(item)) {
            for (const auto& [key, value] : py::dict(py::reinterpret_borrow<py::object>(item)))
                collect(problems, [&, key = key, value = value] { read(key, value); });
            out.known.append(known);
        } else {
            collect(problems, [&] { bad_option(owner, item, "a dict"); });
            out.known.append(py::none());
        }
        ++at;
    }
    for (const auto& [name, values] : out.others)
        for (auto column = py::reinterpret_borrow<py::list>(values); column.size() < at;)
            column.append(py::none());
    return out;
}

/// @throws InvalidInput, with entry and key, for every value that has no JSON form
std::string columns_text(const py::dict& columns, const std::string& list) {
    if (columns.empty()) return {};
    try {
        return json_text(to_document(columns, "<columns>"));
    } catch (const InvalidInput&) {
        Problems problems;
        for (const auto& [name, column] : columns) {
            std::size_t at = 0;
            for (const auto value : column.cast<py::list>()) {
                const auto field = list + "[" + std::to_string(at++) + "]." + name.cast<std::string>();
                collect(problems, [&, value = value] {
                    static_cast<void>(to_document(py::reinterpret_borrow<py::object>(value), field.c_str()));
                });
            }
        }
        problems.throw_if_any();
        throw;
    }
}

/// A number of whole seconds; nothing for None and for NaN, which pandas writes for absent values.
std::optional<std::int64_t> time_of(const std::string& field, py::handle value) {
    if (value.is_none()) return std::nullopt;
    if (PyFloat_Check(value.ptr())) {
        const double number = value.cast<double>();
        if (std::isnan(number)) return std::nullopt;
        if (number == std::floor(number) && number >= 0 && number <= largest_quantity)
            return static_cast<std::int64_t>(number);
    } else {
        try {
            const auto number = OptionType<std::int64_t>::read(field, value);
            if (number >= 0 && number <= largest_quantity) return number;
        } catch (const InvalidInput&) {  // reported below
        }
    }
    bad_option(field, value, "whole seconds from 0 to " + std::to_string(largest_quantity));
}

/// Makes a custom trace.
///
/// `nodes`: dicts as in the cluster format. `tasks`: dicts of pending tasks as in the cluster format, with an
/// additional `arrival` and, unless the task never ends, a `duration`, both in whole seconds. `to_pandas` shows
/// other keys as columns, None if missing. NaN counts as None.
TracePtr trace_from_dicts(const Typed<"Iterable[Mapping[str, Any]]">& nodes,
                          const Typed<"Iterable[Mapping[str, Any]]">& tasks) {
    Problems problems;
    std::vector<std::string_view> node_keys;
    visit_fields(std::type_identity<NodeSpec>{},
                 [&](const char* name, auto, const auto&...) { node_keys.emplace_back(name); });
    const auto of_nodes =
        read_entries("nodes", nodes, node_keys, problems, [](const auto&...) { return false; });
    struct Times {
        std::optional<std::int64_t> arrival{}, duration{};
        bool wrong_arrival = false;
    };
    std::map<std::string, Times> times;  // by owner
    const auto of_tasks = read_entries(
        "tasks", tasks, io::task_keys(), problems,
        [&](const std::string& name, const std::string& owner, py::handle value) {
            const auto field = owner + "." + name;
            if (name == "arrival") {
                auto& of = times[owner];
                of.wrong_arrival = true;
                of.arrival = time_of(field, value);
                of.wrong_arrival = false;
            } else if (name == "duration") {
                times[owner].duration = time_of(field, value);
            } else if (name == "creation_time" || name == "deletion_time" || name == "scheduled_time") {
                throw InvalidInput(field + ": expected 'arrival' and 'duration' instead, which determine it");
            } else if (name == "node" && !value.is_none()) {
                throw InvalidInput(field + ": expected none, because tasks of a trace are pending");
            } else {
                return false;
            }
            return true;
        });
    std::vector<Times> in_order;
    for (std::size_t i = 0; i < of_tasks.known.size(); ++i) {
        const auto owner = "tasks[" + std::to_string(i) + "]";
        in_order.push_back(times[owner]);
        const auto& entry = in_order.back();
        if (!entry.arrival && !entry.wrong_arrival && !of_tasks.known[i].is_none())
            problems.add(owner + ".arrival: missing; expected whole seconds");
    }
    problems.throw_if_any();
    const py::dict document(py::arg("format") = "gpusched.cluster", py::arg("version") = 2,
                            py::arg("nodes") = of_nodes.known, py::arg("tasks") = of_tasks.known);
    auto trace = std::make_shared<NamedTrace>();
    trace->node_columns = columns_text(of_nodes.others, "nodes");
    trace->task_columns = columns_text(of_tasks.others, "tasks");
    auto spec = io::cluster_from_json(to_document(document, "<trace>"));
    unlocked(
        [&] { static_cast<void>(Cluster::build(spec)); });  // checks names and quantities against each other
    trace->nodes = std::move(spec.nodes);
    for (std::size_t i = 0; i < in_order.size(); ++i) {
        const auto& [arrival, duration, wrong] = in_order[i];
        trace->tasks.push_back({std::move(spec.tasks[i]), *arrival,
                                duration ? std::optional(*arrival + *duration) : std::nullopt, std::nullopt});
    }
    return trace;
}

/// Adds the columns that the cluster format does not have.
void add_columns(py::dict& frame, const std::string& columns) {
    if (columns.empty()) return;
    for (const auto& [name, column] : py::dict(parsed(columns))) frame[name] = column;
}

/// State for pickles: a cluster document, creation, deletion and scheduled times, and the other columns.
using TaskTimes = std::tuple<std::int64_t, std::optional<std::int64_t>, std::optional<std::int64_t>>;
using TraceState = std::tuple<py::bytes, std::vector<TaskTimes>, std::string, std::string>;

TraceState trace_state(const NamedTrace& trace) {
    ClusterSpec spec{.now = 0, .nodes = trace.nodes, .tasks = {}, .jobs = {}};
    std::vector<TaskTimes> times;
    for (const auto& t : trace.tasks) {
        spec.tasks.push_back(t.task);
        times.emplace_back(t.creation_time, t.deletion_time, t.scheduled_time);
    }
    return {py::bytes(io::cluster_to_json(spec, 0)), std::move(times), trace.node_columns,
            trace.task_columns};
}

TracePtr trace_from_state(const TraceState& state) {
    const auto& [document, times, node_columns, task_columns] = state;
    auto spec = io::cluster_from_json(document.cast<std::string>(), "<pickle>");
    require_range("times", times.size(), spec.tasks.size(), spec.tasks.size());
    auto trace = std::make_shared<NamedTrace>();
    trace->nodes = std::move(spec.nodes);
    trace->node_columns = node_columns;
    trace->task_columns = task_columns;
    for (std::size_t i = 0; i < times.size(); ++i) {
        const auto& [created, deleted, scheduled] = times[i];
        trace->tasks.push_back({std::move(spec.tasks[i]), created, deleted, scheduled});
    }
    return trace;
}

}  // namespace

void bind_trace(py::module_& m) {
    py::class_<NamedTrace, TracePtr> type(m, "Trace", doc("Trace"));
    define_value(type, &trace_state, &trace_from_state);
    type.def(py::init(&trace_from_dicts), py::arg("nodes"), py::arg("tasks"),
             documented(doc("python::trace_from_dicts")))
        .def_property_readonly(
            "node_count", [](const NamedTrace& t) { return t.nodes.size(); }, "Number of nodes.")
        .def_property_readonly(
            "task_count", [](const NamedTrace& t) { return t.tasks.size(); }, "Number of tasks.")
        .def_property_readonly(
            "gpu_count",
            [](const NamedTrace& t) {
                std::int64_t gpus = 0;
                for (const auto& node : t.nodes) gpus += node.gpu_count;
                return gpus;
            },
            "Number of GPUs of all nodes.")
        .def(
            "to_pandas",
            [](const NamedTrace& t) -> Frames {
                py::list names(t.nodes.size()), models(t.nodes.size());
                std::vector<std::int64_t> gpus, cpu, memory;
                for (std::size_t i = 0; i < t.nodes.size(); ++i) {
                    const auto& node = t.nodes[i];
                    names[i] = py::str(node.name);
                    models[i] =
                        node.gpu_model.empty() ? py::object(py::none()) : py::object(py::str(node.gpu_model));
                    gpus.push_back(node.gpu_count);
                    cpu.push_back(node.cpu_milli);
                    memory.push_back(node.memory_mib);
                }
                py::dict nodes(py::arg("name") = names, py::arg("gpu_model") = models,
                               py::arg("gpu_count") = own(std::move(gpus)),
                               py::arg("cpu_milli") = own(std::move(cpu)),
                               py::arg("memory_mib") = own(std::move(memory)));
                const auto frame = py::module_::import("gpusched._optional")
                                       .attr("require")("pandas", "io")
                                       .attr("DataFrame");
                add_columns(nodes, t.node_columns);
                auto tasks = task_columns(t);
                add_columns(tasks, t.task_columns);
                return py::make_tuple(frame(nodes), frame(tasks));
            },
            documented("Returns two pandas DataFrames, for nodes and tasks, with one row each."))
        .def("__repr__", [](const NamedTrace& t) {
            return "<gpusched.sim.Trace: " + counted(t.nodes, "node") + ", " + counted(t.tasks, "task") + ">";
        });
}

}  // namespace gpusched::python
