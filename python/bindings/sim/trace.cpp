// gpusched.sim: traces.
#include "model/trace.hpp"

#include "core/arguments.hpp"
#include "core/arrays.hpp"
#include "core/keywords.hpp"
#include "core/values.hpp"

#include <gpusched/io/cluster_json.hpp>

#include <cstdint>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

namespace gpusched::python {

namespace {

/// Seconds, with NaN for an absent time: what numpy and pandas make of it.
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

/// A trace as a cluster document plus creation, deletion and scheduled times, for pickling.
using TaskTimes = std::tuple<std::int64_t, std::optional<std::int64_t>, std::optional<std::int64_t>>;
using TraceState = std::tuple<py::bytes, std::vector<TaskTimes>>;

TraceState trace_state(const Trace& trace) {
    ClusterSpec spec{.now = 0, .nodes = trace.nodes, .tasks = {}, .jobs = {}};
    std::vector<TaskTimes> times;
    for (const auto& t : trace.tasks) {
        spec.tasks.push_back(t.task);
        times.emplace_back(t.creation_time, t.deletion_time, t.scheduled_time);
    }
    return {py::bytes(io::cluster_to_json(spec, 0)), std::move(times)};
}

TracePtr trace_from_state(const TraceState& state) {
    const auto& [document, times] = state;
    auto spec = io::cluster_from_json(document.cast<std::string>(), "<pickle>");
    require_range("times", times.size(), spec.tasks.size(), spec.tasks.size());
    auto trace = std::make_shared<Trace>();
    trace->nodes = std::move(spec.nodes);
    for (std::size_t i = 0; i < times.size(); ++i) {
        const auto& [created, deleted, scheduled] = times[i];
        trace->tasks.push_back({std::move(spec.tasks[i]), created, deleted, scheduled});
    }
    return trace;
}

}  // namespace

void bind_trace(py::module_& m) {
    py::class_<Trace, TracePtr> type(m, "Trace", doc("Trace").c_str());
    define_value(type, &trace_state, &trace_from_state);
    type.def_property_readonly(
            "node_count", [](const Trace& t) { return t.nodes.size(); }, "How many nodes there are.")
        .def_property_readonly(
            "task_count", [](const Trace& t) { return t.tasks.size(); }, "How many tasks arrive.")
        .def_property_readonly(
            "gpu_count",
            [](const Trace& t) {
                std::int64_t gpus = 0;
                for (const auto& node : t.nodes) gpus += node.gpu_count;
                return gpus;
            },
            "How many GPUs all nodes have.")
        .def(
            "to_pandas",
            [](const Trace& t) -> Frames {
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
                const py::dict nodes(py::arg("name") = names, py::arg("gpu_model") = models,
                                     py::arg("gpu_count") = own(std::move(gpus)),
                                     py::arg("cpu_milli") = own(std::move(cpu)),
                                     py::arg("memory_mib") = own(std::move(memory)));
                const auto frame = py::module_::import("gpusched._optional")
                                       .attr("require")("pandas", "io")
                                       .attr("DataFrame");
                return py::make_tuple(frame(nodes), frame(task_columns(t)));
            },
            documented("to_pandas(self)", "Two pandas frames, nodes and tasks, one row each.").c_str())
        .def("__repr__", [](const Trace& t) {
            return "<gpusched.sim.Trace: " + counted(t.nodes, "node") + ", " + counted(t.tasks, "task") + ">";
        });
}

}  // namespace gpusched::python
