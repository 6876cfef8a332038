// SPDX-License-Identifier: Apache-2.0
// The module gpusched.preemption: tasks to evict for a pending task, and the online index.
#include "preemption/preemption.hpp"
#include "model/named.hpp"
#include "model/plan.hpp"
#include "model/task_argument.hpp"
#include "support/call.hpp"
#include "support/python_function.hpp"

#include <gpusched/core/gpu_mask.hpp>
#include <gpusched/preemption/index.hpp>

#include <cmath>
#include <variant>

namespace gpusched::python {

// The parts of the module in other files.
void bind_preempt_gang(py::module_& m);
void bind_standby(py::module_& m);

namespace {

namespace p = preemption;

/// A Python function (cluster, task, now).
struct PythonOfTask {
    ClusterPtr cluster;
    std::shared_ptr<py::object> function;

    [[nodiscard]] py::object ask(const char* name, TaskId task, std::int64_t now) const {
        return ask_function(name, *function, "(cluster, task, now)", cluster, TaskView{cluster, task}, now);
    }
};

struct PythonCost : PythonOfTask {
    std::int64_t operator()(const Cluster&, TaskId task, std::int64_t now) const {
        const WithLock lock;
        const auto answer = ask("cost", task, now);
        const auto gpu_s = OptionType<double>::read("cost", answer);
        constexpr auto most = static_cast<double>(p::largest_cost) / 1000;
        if (!(gpu_s >= 0 && gpu_s < most))
            bad_option("cost", answer,
                       "GPU-seconds, 0 to 7.2e13, for task " + gpusched::quoted(cluster->name(task)));
        return std::llround(gpu_s * 1000);
    }
};

/// A victim order written in Python.
struct PythonOrder : PythonOfTask {
    std::int64_t operator()(const Cluster&, TaskId task, std::int64_t now) const {
        const WithLock lock;
        return whole_number("the policy's result for task " + gpusched::quoted(cluster->name(task)),
                            ask("policy", task, now));
    }
};

/// Options of the index, in addition to the options of decisions.
struct IndexArguments : DecisionArguments {
    /// Maximum number of request shapes to keep, at least 1; the least recently used one is dropped.
    std::size_t most_shapes = 64;
};

/// Returns the default lost work of evicting a task in GPU-seconds: its number of GPUs and other devices, times
/// the seconds since its last checkpoint or, without one, its start; 0 for times in the future. This is ASI's
/// C_t of one pod.
double lost_work(const Cluster& cluster, TaskId task, std::int64_t now) {
    return static_cast<double>(p::lost_work(cluster, task, now)) / 1000;
}

/// Returns the lost work of evicting a task together with its gang, in GPU-seconds: the sum of `lost_work` over
/// all running tasks of its job. It is the task's own lost work if the job and its subgroup keep their
/// `min_members` without it, or if it has no job.
double gang_lost_work(const Cluster& cluster, TaskId task, std::int64_t now) {
    return static_cast<double>(p::gang_lost_work(cluster, task, now)) / 1000;
}

GpuMask mask_of(const Cluster& cluster, NodeId node, const std::vector<int>& gpus) {
    const auto bad = [&](int gpu) {
        throw InvalidInput("gpus: " + std::to_string(gpu) + "; expected distinct GPUs of node " +
                           gpusched::quoted(cluster.name(node)));
    };
    return gpu_mask(gpus, cluster.gpu_count(node) + gpu_count(cluster.devices(node)), bad, bad);
}

/// Finds space for a task, with evictions if necessary. Returns a `Decision`, or None if no allowed eviction
/// helps; warns (RuntimeWarning) if a limit ended the search before that was certain.
///
/// `task`: a dict as in the cluster format, or the name of a pending task of the cluster. A dict takes as long
/// as building the snapshot. The cluster is not changed. docs/preemption.md describes policies, possible
/// victims and tie-breaking.
std::optional<NamedDecision> preempt(DecisionArguments o, const ClusterPtr& cluster, const TaskLike& task) {
    const auto [with_task, id] = task_argument(cluster, task);
    use_functions(o, with_task);
    const auto result = Call().run(
        [&, c = with_task, t = id](const Context& context) { return p::preempt(*c, t, o, context); });
    if (result.decision) return named_decision(*with_task, id, *result.decision, result.proven);
    if (!result.proven) warn_of_limit(result.stop_reason, "evictions may still help");
    return std::nullopt;
}

/// Returns all minimal sets of victims on one node (IMP's result R), as lists of names in snapshot order:
/// [[]] if the task fits without evictions, [] if no eviction helps. If the hardware is unknown, the sets are
/// as under "guaranteed".
std::vector<std::vector<std::string>> minimal_victim_sets(MinimalSetsArguments o, const ClusterPtr& cluster,
                                                          const TaskLike& task, const NodeArgument& node) {
    const auto [with_task, id] = task_argument(cluster, task);
    o.policy = chosen_policy(o.policy_choice, with_task);
    const auto at = node_of(*with_task, node);
    const auto found = Call().run([&, c = with_task, t = id](const Context& context) {
        return p::minimal_victim_sets(*c, t, at, o, context);
    });
    if (!found.proven) warn_of_limit(found.stop_reason, "sets may be missing");
    return with_names(*with_task, found.sets);
}

/// A decision that a caller gives by names.
p::Decision decision_of(const Cluster& cluster, const NamedDecision& named) {
    const auto node = cluster.find_node(named.node);
    p::Decision decision;
    decision.node = node;
    decision.gpus = mask_of(cluster, node, named.gpus);
    for (const auto& victim : named.victims) decision.victims.push_back(cluster.find_task(victim));
    for (const auto& again : named.replaced) {
        const auto to = cluster.find_node(again.node);
        decision.replaced.push_back({cluster.find_task(again.task), to, mask_of(cluster, to, again.gpus)});
    }
    return decision;
}

void bind_index(py::module_& m) {
    using Index = p::OnlinePreemption;
    const auto options =
        decision_options<IndexArguments>().field("most_shapes", &IndexArguments::most_shapes);
    const auto of = [](const char* name) {
        return documented(doc(std::string("preemption::OnlinePreemption::") + name));
    };
    py::class_<Index>(m, "OnlinePreemption", doc("preemption::OnlinePreemption"))
        .def(py::init([options](const ClusterPtr& cluster, const py::kwargs& keywords) {
                 auto o = options.read("OnlinePreemption", keywords);
                 use_functions(o, cluster);
                 return std::make_unique<Index>(*cluster, o, o.most_shapes);
             }),
             py::arg("cluster"), options.documented("Makes an index over a copy of the cluster."))
        .def(
            "place",
            [](Index& i, const TaskArgument& task, const NodeArgument& node, const Integers& gpus) {
                const auto at = node_of(i.cluster(), node);
                i.place(task_of(i.cluster(), task), at, mask_of(i.cluster(), at, gpu_numbers(gpus)));
            },
            py::arg("task"), py::arg("node"), py::arg("gpus"), of("place"))
        .def(
            "remove", [](Index& i, const TaskArgument& task) { i.remove(task_of(i.cluster(), task)); },
            py::arg("task"), of("remove"))
        .def(
            "fail_gpu",
            [](Index& i, const NodeArgument& node, const Integer& gpu, bool failed) {
                const auto number = read_within("gpu", gpu, 0, max_gpus_per_node - 1);
                i.fail_gpu(node_of(i.cluster(), node), number, failed);
            },
            py::arg("node"), py::arg("gpu"), py::arg("failed") = true, of("fail_gpu"))
        .def(
            "fail_node",
            [](Index& i, const NodeArgument& node, bool failed) {
                i.fail_node(node_of(i.cluster(), node), failed);
            },
            py::arg("node"), py::arg("failed") = true, of("fail_node"))
        .def(
            "set_now",
            [](Index& i, const Integer& now) { i.set_now(OptionType<std::int64_t>::read("now", now)); },
            py::arg("now"), of("set_now"))
        .def(
            "cluster", [](const Index& i) { return std::make_shared<Cluster>(i.cluster()); },
            documented("Returns a copy of the current snapshot, with all reported changes. A failed node is "
                       "cordoned."))
        .def(
            "failed_gpus",
            [](const Index& i, const NodeArgument& node) {
                return i.cluster().node_spec(node_of(i.cluster(), node)).failed_gpus;
            },
            py::arg("node"),
            documented("Returns the failed GPUs: those of the snapshot, and changes by `fail_gpu`."))
        .def(
            "has_failed",
            [](const Index& i, const NodeArgument& node) { return i.has_failed(node_of(i.cluster(), node)); },
            py::arg("node"), of("has_failed"))
        .def_property_readonly(
            "proven", [](const Index& i) { return i.index().proven(); },
            "True if no search has hit a limit so far.")
        .def_property_readonly(
            "shapes", [](const Index& i) { return i.index().shapes(); },
            doc("preemption::PreemptionIndex::shapes"))
        .def(
            "decide",
            [](Index& i, const TaskArgument& task) -> std::optional<NamedDecision> {
                const auto id = task_of(i.cluster(), task);
                const auto* const d = i.decide(id);
                if (d == nullptr) {
                    if (!i.index().proven()) warn_of_limit(StopReason::completed, "evictions may still help");
                    return std::nullopt;
                }
                return named_decision(i.cluster(), id, *d, i.index().proven());
            },
            py::arg("task"),
            documented("Returns the `Decision` of `preempt` for a pending task of the cluster, or None."))
        .def(
            "apply",
            [](Index& i, const NamedDecision& decision) {
                i.apply(decision_of(i.cluster(), decision), i.cluster().find_task(decision.task));
            },
            py::arg("decision"), of("apply"))
        .def("__repr__", [](const Index& i) {
            return "<gpusched.preemption.OnlinePreemption: " +
                   counted(static_cast<std::int64_t>(i.cluster().node_count()), "node") + ", " +
                   counted(static_cast<std::int64_t>(i.index().shapes()), "shape") + ">";
        });
}

}  // namespace

p::VictimPolicy chosen_policy(const VictimPolicyLike& policy, const ClusterPtr& cluster) {
    if (policy.is_order()) return PythonOrder{{cluster, shared_object(policy)}};
    return OptionType<p::Policy>::read("policy", policy);
}

void use_functions(DecisionArguments& arguments, const ClusterPtr& cluster) {
    arguments.policy = chosen_policy(arguments.policy_choice, cluster);
    if (arguments.cost_function.is_none()) return;
    if (PyCallable_Check(arguments.cost_function.ptr()) == 0)
        bad_option("cost", arguments.cost_function, "a callable (cluster, task, now) or None");
    arguments.cost = PythonCost{{cluster, shared_object(arguments.cost_function)}};
}

void warn_of_limit(StopReason reason, const char* consequence) {
    const auto limit = reason == StopReason::time_limit ? "time_limit" : "search_limit";
    const auto text = std::string(limit) + " was hit: " + consequence;
    if (PyErr_WarnEx(PyExc_RuntimeWarning, text.c_str(), 1) != 0) throw py::error_already_set();
}

NamedDecision named_decision(const Cluster& cluster, TaskId task, const preemption::Decision& d,
                             bool proven) {
    NamedDecision out{cluster.name(task),
                      cluster.name(d.node),
                      {},
                      gpu_list(d.gpus),
                      d.topology,
                      d.score,
                      d.priority_sum,
                      static_cast<double>(d.cost) / 1000,
                      {},
                      named_budgets(cluster, d.broken_budgets),
                      named_placements(cluster, d.replaced),
                      proven};
    for (const auto victim : d.victims) out.victims.push_back(cluster.name(victim));
    for (const auto node : d.vacated_nodes) out.vacated_nodes.push_back(cluster.name(node));
    return out;
}

std::map<std::string, std::int64_t> named_budgets(const Cluster& cluster,
                                                  const std::vector<preemption::BrokenBudget>& broken) {
    std::map<std::string, std::int64_t> out;
    for (const auto& one : broken) out[cluster.inventory().budget_names[one.budget]] = one.over;
    return out;
}

void bind_preemption(py::module_& parent) {
    auto m = submodule(parent, "preemption");
    using D = NamedDecision;
    bind_record<D>(m, "Decision", doc("preemption::Decision"));
    using E = Named<p::Explanation>;
    auto explanation = bind_record<E>(m, "Explanation");
    explanation.def("__str__", [](const py::object& self) { return py::str(self.attr("text")); });
    define_in_python<Frame>(explanation, "to_pandas", "_views.frames.preemption_explanation_to_pandas",
                            "Returns a pandas DataFrame with one row: node, obstacle, missing and text.");
    define_in_python<py::str>(explanation, "_repr_html_", "_views.html.preemption_explanation",
                              "The explanation as HTML, for notebooks.");

    const auto options = decision_options();
    options.shared_as("preemption.preempt")
        .def(m, "preempt", &preempt, doc("python::preempt"), py::arg("cluster"), py::arg("task"));
    Keywords<MinimalSetsArguments>()
        .field("policy", &MinimalSetsArguments::policy_choice,
               doc("python::MinimalSetsArguments::policy_choice"))
        .fields<p::MinimalSetsOptions>()
        .def(m, "minimal_victim_sets", &minimal_victim_sets, doc("python::minimal_victim_sets"),
             py::arg("cluster"), py::arg("task"), py::arg("node"));
    options.def(
        m, "explain",
        [](DecisionArguments o, const ClusterPtr& cluster, const TaskLike& task) {
            const auto [with_task, id] = task_argument(cluster, task);
            use_functions(o, with_task);
            return with_names(*with_task, p::explain(*with_task, id, o));
        },
        doc("preemption::explain"), py::arg("cluster"), py::arg("task"));
    const auto work = [&m](const char* name, auto work_of) {
        m.def(
            name,
            [work_of](const ClusterPtr& cluster, const TaskArgument& task,
                      const std::optional<std::int64_t>& now) {
                const auto id = task_argument(cluster, py::cast(task)).second;
                return work_of(*cluster, id, now.value_or(cluster->inventory().now));
            },
            py::arg("cluster"), py::arg("task"), py::arg("now") = py::none(),
            documented(doc(std::string("python::") + name) +
                       "\n\n`task`: a name or a `Task`. `now`: seconds, None = time of the snapshot."));
    };
    work("lost_work", &lost_work);
    work("gang_lost_work", &gang_lost_work);
    m.def("priority_weight", &p::priority_weight, py::arg("priority"),
          documented(doc("preemption::priority_weight")));
    m.def("score", &p::score, py::arg("weights"), py::arg("topology"), py::arg("alpha") = p::Options{}.alpha,
          documented(doc("preemption::score")));
    m.def("paper_score", &p::paper_score, py::arg("priority_sum"), py::arg("topology"),
          py::arg("alpha") = p::Options{}.alpha, documented(doc("preemption::paper_score")));
    bind_index(m);
    bind_preempt_gang(m);
    bind_standby(m);
}

}  // namespace gpusched::python
