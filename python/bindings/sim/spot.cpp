// SPDX-License-Identifier: Apache-2.0
// The module gpusched.sim: HP and spot jobs, and their replay.
#include "allocation/python_policies.hpp"
#include "model/cluster_views.hpp"
#include "model/plan.hpp"
#include "preemption/preemption.hpp"
#include "sim/timeline.hpp"
#include "support/arguments.hpp"
#include "support/arrays.hpp"
#include "support/call.hpp"
#include "support/documents.hpp"
#include "support/keywords.hpp"
#include "support/python_function.hpp"
#include "support/records.hpp"
#include "support/struct_states.hpp"

#include <gpusched/io/cluster_forms.hpp>
#include <gpusched/io/cluster_json.hpp>
#include <gpusched/sim/spot_replay.hpp>
#include <gpusched/sim/spot_trace.hpp>

#include <array>
#include <tuple>

namespace gpusched::python {

namespace {

using sim::SpotJobRecord;
using sim::SpotReplayResult;
using sim::SpotTimeline;
using sim::SpotTrace;
using sim::Spread;
using Numbers = std::vector<std::int64_t>;
using SpotTracePtr = std::shared_ptr<SpotTrace>;

struct SpotReplayArguments : sim::SpotReplayOptions {
    /// Rankers in order of precedence, 1 to 6: names of `allocation.ranker_names()` that need no workload, or
    /// callables (cluster, task, node) -> integer, which get a copy of the current cluster. Here,
    /// "eviction_history" counts the pods evicted from a node so far. The default is ASI's.
    std::vector<RankerChoice> ranking{};
    ProgressLike progress = py::none();
    /// Called with every plan before its execution: (now_s, cluster, plan), with a copy of the current cluster.
    /// An exception ends the replay and is raised.
    Typed<"Callable[[int, Cluster, Plan], object] | None"> watcher = py::none();

    SpotReplayArguments() : ranking(rankers.begin(), rankers.end()) {}
};

/// A ranker written in Python. For each task, it gets its own copy of the current cluster.
struct SpotRanker : PythonRanker {
    SpotRanker for_task(const Cluster& current, TaskId) const {
        auto ranker = *this;
        ranker.cluster = std::make_shared<Cluster>(current);
        return ranker;
    }
};

/// The given rankers. Functions get generated names in a copy of the library's registries.
allocation::Registries named_rankers(SpotReplayArguments& arguments) {
    auto known = allocation::registries();
    arguments.rankers.clear();
    for (const auto& ranker : arguments.ranking) {
        const auto field = "rankers[" + std::to_string(arguments.rankers.size()) + "]";
        if (py::isinstance<py::str>(ranker)) {
            arguments.rankers.push_back(OptionType<std::string>::read(field, ranker));
            continue;
        }
        if (PyCallable_Check(ranker.ptr()) == 0)
            bad_option(field, ranker, "a name or a callable (cluster, task, node)");
        const auto name = function_name("rankers", arguments.rankers.size(), ranker);
        known.rankers.add(field, [python = SpotRanker{{{{}, shared_object(ranker), name}}}](
                                     const Inventory&) { return python; });
        arguments.rankers.push_back(field);
    }
    return known;
}

/// An observer of plans written in Python. It gets its own copy of the cluster.
sim::PlanObserver python_observer(const py::object& function) {
    if (function.is_none()) return {};
    if (PyCallable_Check(function.ptr()) == 0)
        bad_option("observer", function, "a callable (now_s, cluster, plan) or None");
    return [shared = shared_object(function)](std::int64_t now_s, const Cluster& before, const Plan& plan) {
        const WithLock lock;
        call_python(*shared, now_s, std::make_shared<Cluster>(before), NamedPlan{to_spec(plan, before)});
    };
}

// Traces.

/// Pods, arrival and work of each job.
using JobTimes = std::vector<std::array<std::int64_t, 3>>;

SpotTracePtr make_spot_trace(ClusterSpec spec, const JobTimes& times) {
    require_range("jobs", times.size(), spec.tasks.size(), spec.tasks.size());
    auto trace = std::make_shared<SpotTrace>();
    trace->nodes = std::move(spec.nodes);
    for (std::size_t i = 0; i < times.size(); ++i)
        trace->jobs.push_back({std::move(spec.tasks[i]), times[i][0], times[i][1], times[i][2]});
    return trace;
}

/// A job as a dict: a task of the cluster format with its pods and times.
struct SpotJobDocument : TaskSpec {
    std::int64_t pods = 1, arrival_s = 0, work_s = 1;
};
template <class F>
constexpr void visit_fields(std::type_identity<SpotJobDocument>, F&& field) {
    visit_fields(std::type_identity<TaskSpec>{}, field);
    field("pods", &SpotJobDocument::pods);
    field("arrival_s", &SpotJobDocument::arrival_s);
    field("work_s", &SpotJobDocument::work_s);
}

/// Makes a custom trace.
///
/// `nodes`: dicts as in the cluster format. `jobs`: dicts of pending tasks as in the cluster format, with
/// additional keys `pods` (default 1), `arrival_s` (0) and `work_s` (1).
SpotTracePtr from_dicts(const Typed<"Sequence[Mapping[str, Any]]">& nodes,
                        const py::typing::List<JsonObject>& jobs) {
    ClusterSpec spec;
    std::vector<SpotJobDocument> given;
    Problems problems;
    collect(problems, [&] { spec.nodes = from_python<std::vector<NodeSpec>>("nodes", nodes); });
    collect(problems, [&] { given = from_python<std::vector<SpotJobDocument>>("jobs", jobs); });
    problems.throw_if_any();
    JobTimes times;
    for (auto& job : given) {
        times.push_back({job.pods, job.arrival_s, job.work_s});
        spec.tasks.push_back(std::move(job));
    }
    return make_spot_trace(std::move(spec), times);
}

using SpotTraceState = std::tuple<py::bytes, JobTimes>;

SpotTraceState spot_trace_state(const SpotTrace& trace) {
    ClusterSpec spec{.now = 0, .nodes = trace.nodes, .tasks = {}, .jobs = {}};
    JobTimes times;
    for (const auto& job : trace.jobs) {
        spec.tasks.push_back(job.pod);
        times.push_back({job.pods, job.arrival_s, job.work_s});
    }
    return {py::bytes(io::cluster_to_json(spec, 0)), std::move(times)};
}

template <class F>
auto numbers_of(const SpotTrace& trace, F value) {
    Numbers values;
    values.reserve(trace.jobs.size());
    for (const auto& job : trace.jobs) values.push_back(value(job));
    return own(std::move(values));
}

Frame frame(const SpotTrace& trace) {
    py::list names, classes;
    for (const auto& job : trace.jobs) {
        names.append(py::str(job.pod.name));
        classes.append(job.pod.priority_class);
    }
    using J = sim::SpotJob;
    py::dict columns;
    columns["name"] = names;
    columns["priority_class"] = classes;
    columns["pods"] = numbers_of(trace, [](const J& j) { return j.pods; });
    columns["gpu_count"] = numbers_of(trace, [](const J& j) { return j.pod.gpu_count; });
    columns["gpu_share_milli"] = numbers_of(trace, [](const J& j) { return j.pod.gpu_share_milli; });
    columns["cpu_milli"] = numbers_of(trace, [](const J& j) { return j.pod.cpu_milli; });
    columns["memory_mib"] = numbers_of(trace, [](const J& j) { return j.pod.memory_mib; });
    columns["checkpoint_interval"] = numbers_of(trace, [](const J& j) { return j.pod.checkpoint_interval; });
    columns["arrival_s"] = numbers_of(trace, [](const J& j) { return j.arrival_s; });
    columns["work_s"] = numbers_of(trace, [](const J& j) { return j.work_s; });
    return py::module_::import("pandas").attr("DataFrame")(columns);
}

void bind_spot_trace(py::module_& m) {
    py::class_<SpotTrace, SpotTracePtr> type(m, "SpotTrace",
                                             "Empty nodes, and the HP and spot (LP) jobs that arrive.");
    define_value(type, &spot_trace_state, [](const SpotTraceState& from) {
        const auto& [document, times] = from;
        return make_spot_trace(io::cluster_from_json(document.cast<std::string>(), "<pickle>"), times);
    });
    type.def(py::init(&from_dicts), py::arg("nodes"), py::arg("jobs"), documented(doc("python::from_dicts")))
        .def_property_readonly(
            "node_count", [](const SpotTrace& t) { return t.nodes.size(); }, "Number of nodes.")
        .def_property_readonly(
            "job_count", [](const SpotTrace& t) { return t.jobs.size(); }, "Number of jobs.")
        .def("to_pandas", frame, documented("Returns a pandas DataFrame with one row per job."))
        .def("__repr__", [](const SpotTrace& t) {
            return "<gpusched.sim.SpotTrace: " + counted(t.nodes, "node") + ", " + counted(t.jobs, "job") +
                   ">";
        });
    using O = sim::SpotTraceOptions;
    Keywords<O>().fields().def(
        m, "generate_spot_trace",
        [](const O& o) {
            return unlocked([&] { return std::make_shared<SpotTrace>(sim::generate_spot_trace(o)); });
        },
        doc("sim::generate_spot_trace"));
    Keywords<sim::SpotListOptions>().fields().def(
        m, "read_spot_trace",
        [](const sim::SpotListOptions& o, const PathLike& node_csv, const PathLike& job_csv) {
            const auto nodes = path_text(node_csv, "node_csv"), jobs = path_text(job_csv, "job_csv");
            return unlocked(
                [&] { return std::make_shared<SpotTrace>(sim::read_spot_trace(nodes, jobs, o)); });
        },
        doc("sim::read_spot_trace"), py::arg("node_csv"), py::arg("job_csv"));
}

// Results.

using Arrays = Typed<"dict[str, numpy.typing.NDArray[numpy.int64]]">;

/// One array per field of the jobs.
Arrays job_columns(const SpotReplayResult& r) {
    py::dict columns;
    visit_fields(std::type_identity<SpotJobRecord>{}, [&](const char* name, auto member) {
        Numbers values;
        values.reserve(r.jobs.size());
        for (const auto& job : r.jobs) values.push_back(job.*member);
        columns[name] = own(std::move(values));
    });
    return columns;
}

void bind_spot_result(py::module_& m) {
    bind_record<Spread>(m, "Spread");
    bind_timeline<SpotTimeline>(
        m, "SpotTimeline", "Course of a spot replay: read-only arrays with one entry per hour.", "hours");
    using R = SpotReplayResult;
    const auto of = [](const char* name) { return doc(std::string("sim::SpotReplayResult::") + name); };
    py::class_<R> type(
        m, "SpotReplayResult",
        "Results of HP and spot jobs. All values except `jobs`, `timeline` and `end_s` cover only the "
        "measured part.");
    define_value(type);
    visit_fields(std::type_identity<R>{}, [&]<class V>(const char* name, V R::*member) {
        if constexpr (std::is_arithmetic_v<V> || std::is_enum_v<V> || std::is_same_v<V, Spread>)
            type.def_readonly(name, member, of(name));
    });
    type.def_property_readonly(
            "jobs", &job_columns,
            "Times of every job of the trace in seconds: a dict of arrays; -1 = never. held_s = startup_s "
            "+ kept_s + lost_s + open_s + slowed_s.")
        .def_property_readonly(
            "timeline", [](const R& r) { return std::make_shared<SpotTimeline>(r.timeline); },
            "GPUs of running jobs, and waiting jobs, hour by hour.")
        .def("__repr__", [](const R& r) {
            return "<gpusched.sim.SpotReplayResult: " + counted(r.jobs, "job") + ", " +
                   counted(r.preemptions, "preemption") + ">";
        });
}

}  // namespace

void bind_spot_jobs(py::module_& m) {
    bind_spot_trace(m);
    bind_spot_result(m);
    using A = SpotReplayArguments;
    const auto options = Keywords<A>()
                             .field("rankers", &A::ranking, doc("python::SpotReplayArguments::ranking"))
                             .fields<sim::SpotReplayOptions>()
                             .field("observer", &A::watcher, doc("python::SpotReplayArguments::watcher"))
                             .field("progress", &A::progress, progress_text);
    options.def(
        m, "replay_spot",
        [](A arguments, const SpotTracePtr& trace) {
            arguments.observer = python_observer(arguments.watcher);
            const auto known = named_rankers(arguments);
            const sim::SpotReplayOptions& o = arguments;
            return Call(arguments.progress).run([&](const Context& context) {
                return sim::replay_spot(*trace, o, context, known);
            });
        },
        doc("sim::replay_spot"), py::arg("trace"));
}

}  // namespace gpusched::python
