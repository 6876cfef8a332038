// gpusched.sim: HP and spot jobs, and their replay.
#include "core/arguments.hpp"
#include "core/arrays.hpp"
#include "core/call.hpp"
#include "core/keywords.hpp"
#include "core/pickles.hpp"
#include "core/python_function.hpp"
#include "core/records.hpp"
#include "model/cluster_views.hpp"
#include "model/plan.hpp"
#include "preemption/preemption.hpp"

#include <gpusched/io/cluster_json.hpp>
#include <gpusched/sim/spot_lists.hpp>
#include <gpusched/sim/spot_replay.hpp>

#include <memory>

namespace gpusched::python {

namespace {

using sim::SpotJobRecord;
using sim::SpotReplayResult;
using sim::SpotTimeline;
using sim::SpotTrace;
using sim::Spread;
using Numbers = std::vector<std::int64_t>;
using SpotTracePtr = std::shared_ptr<SpotTrace>;

using RankerLike = Typed<"str | Callable[[Cluster, Task, Node], int]">;

struct SpotReplayArguments : sim::SpotReplayOptions {
    std::vector<RankerLike> ranking = [] {
        const sim::SpotReplayOptions defaults;
        return std::vector<RankerLike>(defaults.rankers.begin(), defaults.rankers.end());
    }();
    ProgressLike progress = py::none();
    Typed<"Callable[[int, Cluster, Plan], object] | None"> watcher = py::none();
};

/// A ranker written in Python: a callable (cluster, task, node) that answers a whole number. Whenever nodes are ranked for a
/// task it gets a copy of the cluster as it is, which is its to keep. Exceptions pass through.
class PythonRanker {
  public:
    PythonRanker(std::string name, py::object function)
        : name_(std::move(name)), function_(shared_object(std::move(function))) {}

    PythonRanker for_task(const Cluster& cluster, TaskId) const {
        auto ranker = *this;
        ranker.cluster_ = std::make_shared<Cluster>(cluster);
        return ranker;
    }
    std::int64_t operator()(const Cluster&, TaskId task, NodeId node) const {
        const py::gil_scoped_acquire lock;
        return whole_number(name_ + "'s answer for task " + gpusched::quoted(cluster_->name(task)) +
                                " and node " + gpusched::quoted(cluster_->name(node)),
                            ask_function(name_, *function_, "(cluster, task, node)", cluster_,
                                         TaskView{cluster_, task}, NodeView{cluster_, node}));
    }

  private:
    std::string name_;                      // how messages call it
    std::shared_ptr<py::object> function_;  // shared: references are counted only while the lock is held
    ClusterPtr cluster_;
};

/// The rankers that are asked for: functions get names of their own in a copy of the library's registries.
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
        known.rankers.add(field, [python = PythonRanker(name, ranker)](const Inventory&) { return python; });
        arguments.rankers.push_back(field);
    }
    return known;
}

/// An observer of plans written in Python; it gets a copy of the cluster, which is its to keep.
sim::PlanObserver python_observer(const py::object& function) {
    if (function.is_none()) return {};
    if (PyCallable_Check(function.ptr()) == 0)
        bad_option("observer", function, "a callable (now_s, cluster, plan) or None");
    return [shared = shared_object(function)](std::int64_t now_s, const Cluster& before, const Plan& plan) {
        const py::gil_scoped_acquire lock;
        (*shared)(now_s, std::make_shared<Cluster>(before), NamedPlan{to_spec(plan, before)});
    };
}

constexpr std::array record_columns{std::pair{"first_start_s", &SpotJobRecord::first_start_s},
                                    std::pair{"finish_s", &SpotJobRecord::finish_s},
                                    std::pair{"wait_s", &SpotJobRecord::wait_s},
                                    std::pair{"evictions", &SpotJobRecord::evictions},
                                    std::pair{"held_s", &SpotJobRecord::held_s},
                                    std::pair{"startup_s", &SpotJobRecord::startup_s},
                                    std::pair{"kept_s", &SpotJobRecord::kept_s},
                                    std::pair{"lost_s", &SpotJobRecord::lost_s},
                                    std::pair{"open_s", &SpotJobRecord::open_s}};
constexpr std::array timeline_columns{
    std::pair{"time_s", &SpotTimeline::time_s}, std::pair{"hp_gpu_milli", &SpotTimeline::hp_gpu_milli},
    std::pair{"lp_gpu_milli", &SpotTimeline::lp_gpu_milli},
    std::pair{"hp_waiting", &SpotTimeline::hp_waiting}, std::pair{"lp_waiting", &SpotTimeline::lp_waiting}};

Numbers column(const SpotReplayResult& r, std::int64_t SpotJobRecord::*member) {
    Numbers values;
    values.reserve(r.jobs.size());
    for (const auto& job : r.jobs) values.push_back(job.*member);
    return values;
}

// Traces -----------------------------------------------------------------------------------------------------

SpotTracePtr make_spot_trace(ClusterSpec spec, const std::vector<std::array<std::int64_t, 3>>& times) {
    auto trace = std::make_shared<SpotTrace>();
    trace->nodes = std::move(spec.nodes);
    for (std::size_t i = 0; i < times.size(); ++i)
        trace->jobs.push_back({std::move(spec.tasks[i]), times[i][0], times[i][1], times[i][2]});
    return trace;
}

SpotTracePtr from_dicts(const Typed<"Sequence[Mapping[str, Any]]">& nodes,
                        const py::typing::List<JsonObject>& jobs) {
    std::vector<std::array<std::int64_t, 3>> times;
    py::list tasks;
    Problems problems;
    for (const auto& given : jobs) {
        py::dict task;
        std::array<std::int64_t, 3> numbers{1, 0, 1};
        for (const auto& [key, value] : py::dict(py::reinterpret_borrow<py::object>(given))) {
            const auto job = "jobs[" + std::to_string(times.size()) + "]";
            const auto name = OptionType<std::string>::read(job + ", a key", key), owner = job + "." + name;
            try {
                if (name == "pods")
                    numbers[0] = OptionType<std::int64_t>::read(owner, value);
                else if (name == "arrival_s")
                    numbers[1] = OptionType<std::int64_t>::read(owner, value);
                else if (name == "work_s")
                    numbers[2] = OptionType<std::int64_t>::read(owner, value);
                else
                    task[key] = value;
            } catch (const InvalidInput& error) {
                for (const auto& problem : error.problems()) problems.add(problem);
            }
        }
        times.push_back(numbers);
        tasks.append(task);
    }
    problems.throw_if_any();
    const py::dict document(py::arg("format") = "gpusched.cluster", py::arg("version") = 2,
                            py::arg("nodes") = nodes, py::arg("tasks") = tasks);
    return make_spot_trace(io::cluster_from_json(json_text(document), "<trace>"), times);
}

py::tuple state(const SpotTrace& trace) {
    ClusterSpec spec{.now = 0, .nodes = trace.nodes, .tasks = {}, .jobs = {}};
    std::vector<std::array<std::int64_t, 3>> times;
    for (const auto& job : trace.jobs) {
        spec.tasks.push_back(job.pod);
        times.push_back({job.pods, job.arrival_s, job.work_s});
    }
    return py::make_tuple(py::bytes(io::cluster_to_json(spec, 0)), times);
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
    py::class_<SpotTrace, SpotTracePtr>(m, "SpotTrace",
                                        "Empty nodes, and the HP and spot (LP) jobs that arrive on them.")
        .def(py::init(&from_dicts), py::arg("nodes"), py::arg("jobs"),
             documented(
                 "__init__(self, nodes, jobs)",
                 "A trace of one's own. `nodes` and `jobs` are lists of dicts as in the cluster format, "
                 "nodes and "
                 "pending tasks; a job has `pods` (default 1), `arrival_s` (0) and `work_s` (1) besides.")
                 .c_str())
        .def_property_readonly(
            "node_count", [](const SpotTrace& t) { return t.nodes.size(); }, "How many nodes there are.")
        .def_property_readonly(
            "job_count", [](const SpotTrace& t) { return t.jobs.size(); }, "How many jobs arrive.")
        .def("to_pandas", frame, documented("to_pandas(self)", "A pandas frame, one job a row.").c_str())
        .def("__copy__", [](const SpotTracePtr& t) { return t; })
        .def(
            "__deepcopy__", [](const SpotTracePtr& t, const py::dict&) { return t; }, py::arg("memo"))
        .def(
            "__eq__", [](const SpotTrace& a, const SpotTrace& b) { return a == b; }, py::is_operator())
        .def("__repr__",
             [](const SpotTrace& t) {
                 return "<gpusched.sim.SpotTrace: " + counted(t.nodes, "node") + ", " +
                        counted(t.jobs, "job") + ">";
             })
        .def(py::pickle([](const SpotTrace& t) { return state(t); },
                        [](const py::tuple& s) {
                            return make_spot_trace(
                                io::cluster_from_json(s[0].cast<std::string>(), "<pickle>"),
                                s[1].cast<std::vector<std::array<std::int64_t, 3>>>());
                        }));
    using O = sim::SpotTraceOptions;
    const auto options = Keywords<O>().fields();
    m.def(
        "generate_spot_trace",
        [options](const py::kwargs& keywords) {
            const auto o = options.read("generate_spot_trace", keywords);
            return unlocked([&] { return std::make_shared<SpotTrace>(sim::generate_spot_trace(o)); });
        },
        options.documented("generate_spot_trace(", doc("sim::generate_spot_trace")).c_str());
    const auto lists = Keywords<sim::SpotListOptions>().fields();
    m.def(
        "read_spot_trace",
        [lists](const PathLike& node_csv, const PathLike& job_csv, const py::kwargs& keywords) {
            const auto o = lists.read("read_spot_trace", keywords);
            const auto nodes = path_text(node_csv), jobs = path_text(job_csv);
            return unlocked(
                [&] { return std::make_shared<SpotTrace>(sim::read_spot_trace(nodes, jobs, o)); });
        },
        py::arg("node_csv"), py::arg("job_csv"),
        lists.documented("read_spot_trace(node_csv, job_csv", doc("sim::read_spot_trace")).c_str());
}

// Results ----------------------------------------------------------------------------------------------------

py::tuple state(const SpotReplayResult& r) {
    std::vector<Numbers> jobs, timeline;
    for (const auto& [name, member] : record_columns) jobs.push_back(column(r, member));
    for (const auto& [name, member] : timeline_columns) timeline.push_back(r.timeline.*member);
    return py::make_tuple(jobs, timeline,
                          py::make_tuple(r.lp_completion_s, r.hp_wait_s, r.lp_wait_s, r.decision_us),
                          Numbers{r.end_s, r.hp_unfinished, r.lp_unfinished, r.lp_evictions, r.preemptions,
                                  r.moves, r.consolidations, static_cast<std::int64_t>(r.stop_reason)},
                          std::vector<double>{r.hp_allocation, r.lp_allocation, r.lp_kept_gpu_h,
                                              r.lp_lost_gpu_h, r.lp_startup_gpu_h});
}

SpotReplayResult replay_from_state(const py::tuple& s) {
    SpotReplayResult r;
    const auto jobs = s[0].cast<std::vector<Numbers>>(), timeline = s[1].cast<std::vector<Numbers>>();
    r.jobs.resize(jobs.front().size());
    for (std::size_t c = 0; c < record_columns.size(); ++c)
        for (std::size_t j = 0; j < r.jobs.size(); ++j) r.jobs[j].*record_columns[c].second = jobs[c][j];
    for (std::size_t c = 0; c < timeline_columns.size(); ++c)
        r.timeline.*timeline_columns[c].second = timeline[c];
    const auto spreads = s[2].cast<py::tuple>();
    r.lp_completion_s = spreads[0].cast<Spread>();
    r.hp_wait_s = spreads[1].cast<Spread>();
    r.lp_wait_s = spreads[2].cast<Spread>();
    r.decision_us = spreads[3].cast<Spread>();
    const auto n = s[3].cast<Numbers>();
    r.end_s = n[0], r.hp_unfinished = n[1], r.lp_unfinished = n[2], r.lp_evictions = n[3];
    r.preemptions = n[4], r.moves = n[5], r.consolidations = n[6];
    r.stop_reason = static_cast<StopReason>(n[7]);
    const auto x = s[4].cast<std::vector<double>>();
    r.hp_allocation = x[0], r.lp_allocation = x[1], r.lp_kept_gpu_h = x[2], r.lp_lost_gpu_h = x[3];
    r.lp_startup_gpu_h = x[4];
    return r;
}

void bind_spot_result(py::module_& m) {
    auto spread = py::class_<Spread>(m, "Spread", doc("sim::Spread").c_str());
    define_record(spread);
    using R = SpotReplayResult;
    const auto of = [](const char* name) { return doc(std::string("sim::SpotReplayResult::") + name); };
    py::class_<R> type(
        m, "SpotReplayResult",
        "What became of HP and spot jobs. Everything but `jobs`, `timeline` and `end_s` is about what is "
        "measured.");
    define_equality(type, [](const R& r) { return state(r); });
    type.def_property_readonly(
            "jobs", [](const R& r) -> Typed<"dict[str, numpy.typing.NDArray[numpy.int64]]"> {
                py::dict columns;
                for (const auto& [name, member] : record_columns) columns[name] = own(column(r, member));
                return columns;
            },
            "What became of each job of the trace, in seconds: a dict of arrays. held_s = startup_s + kept_s "
            "+ "
            "lost_s + open_s; -1 = never.")
        .def_property_readonly(
            "timeline", [](const R& r) -> Typed<"dict[str, numpy.typing.NDArray[numpy.int64]]"> {
                py::dict columns;
                for (const auto& [name, member] : timeline_columns)
                    columns[name] = own(Numbers(r.timeline.*member));
                return columns;
            },
            "Hour by hour, a dict of arrays: GPUs held in thousandths, and waiting jobs.")
        .def_readonly("end_s", &R::end_s, of("end_s").c_str())
        .def_readonly("hp_allocation", &R::hp_allocation,
                      "Part of the healthy GPUs that HP jobs hold, mean over time.")
        .def_readonly("lp_allocation", &R::lp_allocation, "The same of LP jobs.")
        .def_readonly("lp_completion_s", &R::lp_completion_s, of("lp_completion_s").c_str())
        .def_readonly("hp_wait_s", &R::hp_wait_s,
                      "From arrival until HP jobs work, of those that have started.")
        .def_readonly("lp_wait_s", &R::lp_wait_s, "From arrival until LP jobs first have their GPUs.")
        .def_readonly("hp_unfinished", &R::hp_unfinished, "Jobs.")
        .def_readonly("lp_unfinished", &R::lp_unfinished, "Jobs.")
        .def_readonly("lp_kept_gpu_h", &R::lp_kept_gpu_h, "Work of LP jobs that is safe, in GPU-hours.")
        .def_readonly("lp_lost_gpu_h", &R::lp_lost_gpu_h, "Work of LP jobs that evictions wasted.")
        .def_readonly("lp_startup_gpu_h", &R::lp_startup_gpu_h, "GPU-hours of LP jobs before work began.")
        .def_readonly("lp_evictions", &R::lp_evictions, "Of whole LP jobs.")
        .def_readonly("preemptions", &R::preemptions, of("preemptions").c_str())
        .def_readonly("moves", &R::moves, of("moves").c_str())
        .def_readonly("consolidations", &R::consolidations, "Those that moved anything.")
        .def_readonly("decision_us", &R::decision_us, of("decision_us").c_str())
        .def_property_readonly(
            "stop_reason", [](const R& r) { return r.stop_reason; }, "Why the replay ended.")
        .def("__copy__", [](const R& r) { return r; })
        .def(
            "__deepcopy__", [](const R& r, const py::dict&) { return r; }, py::arg("memo"))
        .def("__repr__",
             [](const R& r) {
                 return "<gpusched.sim.SpotReplayResult: " + counted(r.jobs, "job") + ", " +
                        counted(r.preemptions, "preemption") + ">";
             })
        .def(py::pickle([](const R& r) { return state(r); },
                        [](const py::tuple& s) { return replay_from_state(s); }));
}

}  // namespace

void bind_spot_jobs(py::module_& m) {
    bind_spot_trace(m);
    bind_spot_result(m);
    using A = SpotReplayArguments;
    const auto options =
        Keywords<A>()
            .field(
                "rankers", &A::ranking,
                "One after the other, each breaks the ties of those before it; 1 to 6 names of "
                "`allocation.ranker_names()` that need no workload, or callables (cluster, task, node) that "
                "answer a whole number and get a copy of the cluster as it is. Here \"eviction_history\" "
                "counts the pods evicted from a node so far. The default is ASI's.")
            .fields<sim::SpotReplayOptions>()
            .field("observer", &A::watcher,
                   "Called with every plan before it is carried out: (now_s, cluster, plan), with a "
                   "copy of the cluster as it is. An exception in it ends the replay and surfaces.")
            .field("progress", &A::progress, progress_text);
    m.def(
        "replay_spot",
        [options](const SpotTracePtr& trace, const py::kwargs& keywords) {
            auto arguments = options.read("replay_spot", keywords);
            arguments.observer = python_observer(arguments.watcher);
            const auto known = named_rankers(arguments);
            const sim::SpotReplayOptions& o = arguments;
            return Call(arguments.progress).run([&](const Context& context) {
                return sim::replay_spot(*trace, o, context, known);
            });
        },
        py::arg("trace"), options.documented("replay_spot(trace", doc("sim::replay_spot")).c_str());
}

}  // namespace gpusched::python
