// SPDX-License-Identifier: Apache-2.0
// The module gpusched.model: plans.
#include "model/plan.hpp"

#include "model/cluster_views.hpp"
#include "support/arguments.hpp"
#include "support/documents.hpp"
#include "support/fields.hpp"
#include "support/records.hpp"
#include "support/struct_states.hpp"

#include <gpusched/consolidation/result.hpp>
#include <gpusched/core/file.hpp>
#include <gpusched/core/gpu_mask.hpp>
#include <gpusched/io/cluster_json.hpp>
#include <gpusched/io/plan_json.hpp>
#include <gpusched/model/cluster.hpp>
#include <gpusched/model/disturbance.hpp>
#include <gpusched/model/plan.hpp>

#include <cmath>
#include <set>
#include <tuple>

namespace gpusched::python {

namespace {

/// A statistic for Python: an int if it is whole.
py::object number(double value) {
    if (std::abs(value) < 0x1p53 && std::trunc(value) == value)
        return py::int_(static_cast<std::int64_t>(value));
    return py::float_(value);
}

py::tuple as_tuple(const PlanSpec::Placement& placement) {
    return py::make_tuple(placement.task, placement.node, placement.gpus);
}

}  // namespace

std::vector<PlanSpec::Placement> named_placements(const Cluster& cluster,
                                                  const std::vector<Placement>& placements) {
    std::vector<PlanSpec::Placement> out;
    for (const auto& one : placements)
        out.push_back({cluster.name(one.task), cluster.name(one.node), gpu_list(one.gpus)});
    return out;
}

py::dict bound_dict(const Bound& bound) { return stated_fields(bound); }

namespace {

/// The key of a document for the added tasks and jobs of its plan: a `gpusched.cluster` without nodes.
constexpr const char* brings = "x-brings";

/// Checks that a plan adds only pending tasks that it places, each once.
/// @param where position of the snapshot, which begins the messages
void check_brought(const PlanSpec& plan, const ClusterSpec& brought, const std::string& where) {
    Problems problems;
    auto others = brought;
    others.tasks.clear();
    others.jobs.clear();
    others.label_levels.clear();
    if (others != ClusterSpec{}) problems.add(where + "expected only tasks, jobs and label_levels");
    std::set<std::string> placed, seen;
    for (const auto& placement : plan.placements) placed.insert(placement.task);
    for (const auto& task : brought.tasks) {
        const auto owner = where + "task " + quoted(task.name);
        if (!seen.insert(task.name).second) problems.add(owner + ": appears twice");
        if (task.node) problems.add(owner + ": runs on a node; expected a pending task");
        if (task.locked || task.standby)
            problems.add(owner + ": locked or standby; expected a task that can start");
        if (!placed.contains(task.name)) problems.add(owner + ": not placed by the plan");
    }
    for (const auto& job : brought.jobs)
        if (std::none_of(brought.tasks.begin(), brought.tasks.end(),
                         [&](const TaskSpec& task) { return task.job == job.name; }))
            problems.add(where + "job " + quoted(job.name) + ": no tasks; expected at least one");
    problems.throw_if_any();
}

NamedPlan plan_of(const json::Document& document) {
    NamedPlan plan{io::plan_from_json(document)};
    const auto at = document.find(0, brings);
    if (!at) return plan;
    auto snapshot = io::cluster_from_json(document.part(*at));
    check_brought(plan.spec, snapshot, document.where(*at));
    plan.brought = Brought(std::move(snapshot));
    return plan;
}

NamedPlan read_plan(const py::object& source) {
    if (is_path(source)) {
        const auto path = path_text(source);
        return unlocked([&] {
            Problems problems;
            const auto document = json::Document::parse(read_file(path), path, problems);
            problems.throw_if_any();
            return plan_of(document);
        });
    }
    if (!is_mapping(source)) bad_type("plan", source, "a Plan, a dict or the path of a file");
    return plan_of(to_document(source, "<dict>"));
}

std::string plan_text(const NamedPlan& plan, int indent) {
    auto text = io::plan_to_json(plan.spec, indent);
    if (plan.brought.tasks.empty()) return text;
    ClusterSpec brought;
    add(brought, plan.brought);
    const auto end =
        text.substr(text.rfind('}') - (indent > 0));  // "}", with a line break before it if indented
    text.resize(text.rfind('}') - (indent > 0));
    return text + (indent > 0 ? ",\n \"" : ",\"") + brings + "\":" + io::cluster_to_json(brought, 0) + end;
}

std::string plan_repr(const NamedPlan& p) {
    return "<gpusched.Plan: " + counted(p.spec.moves, "move") + " in " + counted(p.spec.waves, "wave") +
           ", " + counted(p.spec.vacated_nodes, "node") + " vacated, " +
           counted(p.spec.evictions, "eviction") + ", " + counted(p.spec.placements, "placement") + ">";
}

/// A property that the plan itself has.
template <class V>
auto of_plan(V PlanSpec::*member) {
    return [member](const NamedPlan& p) { return p.spec.*member; };
}

/// A goal as a dict, as for `consolidate`.
Typed<"dict[str, Any] | None"> goal_dict(const std::optional<Goal>& goal) {
    if (!goal) return py::none();
    return stated_fields(*goal);
}

}  // namespace

Brought::Brought(ClusterSpec snapshot) {
    // The levels that are referred to, in the order of their first use.
    Brought given;
    given.tasks = std::move(snapshot.tasks);
    given.jobs = std::move(snapshot.jobs);
    given.label_levels = std::move(snapshot.label_levels);
    ClusterSpec alone;
    add(alone, given);
    tasks = std::move(alone.tasks);
    jobs = std::move(alone.jobs);
    label_levels = std::move(alone.label_levels);
}

Brought brought_pods(const Cluster& cluster, std::span<const TaskId> pods) {
    ClusterSpec snapshot;
    for (const auto pod : pods) snapshot.tasks.push_back(cluster.task_spec(pod));
    const auto& inv = cluster.inventory();
    for (const auto& level : inv.label_levels) snapshot.label_levels.push_back(level.key);
    if (const auto job = pods.empty() ? none<JobId> : inv.tasks.job[index(pods.front())];
        job != none<JobId> && inv.job_listed[index(job)] != 0)
        snapshot.jobs.push_back(cluster.job_spec(job));
    return Brought(std::move(snapshot));
}

NamedPlan named_plan(const py::object& plan) {
    return py::isinstance<NamedPlan>(plan) ? plan.cast<const NamedPlan&>() : read_plan(plan);
}

void add(ClusterSpec& snapshot, const Brought& brought) {
    const auto add_unknown = [](auto& all, const auto& more) {
        std::set<std::string> known;
        if (!more.empty())
            for (const auto& one : all) known.insert(one.name);
        for (const auto& one : more)
            if (!known.contains(one.name)) all.push_back(one);
    };
    // The snapshot may have the same levels with other numbers.
    auto tasks = brought.tasks;
    const auto renumber = [&](auto& terms) {
        for (auto& term : terms) {
            if (term.level < first_label_level) continue;
            const auto& key =
                brought.label_levels.at(static_cast<std::size_t>(term.level - first_label_level));
            auto& known = snapshot.label_levels;
            const auto at = std::find(known.begin(), known.end(), key) - known.begin();
            if (at == std::ssize(known)) known.push_back(key);
            term.level = first_label_level + static_cast<Level>(at);
        }
    };
    for (auto& task : tasks) {
        renumber(task.anti_affinity);
        renumber(task.affinity);
        renumber(task.spread);
        renumber(task.near);
        renumber(task.avoid);
    }
    add_unknown(snapshot.jobs, brought.jobs);
    add_unknown(snapshot.tasks, tasks);
}

ClusterPtr with_brought(const ClusterPtr& cluster, const NamedPlan& plan) {
    if (plan.brought.tasks.empty()) return cluster;
    auto snapshot = cluster->to_spec();
    add(snapshot, plan.brought);
    return std::make_shared<Cluster>(Cluster::build(snapshot));
}

PlanSpec plan_argument(const py::object& plan) { return named_plan(plan).spec; }

void bind_plan(py::module_& m) {
    // Attributes have the names of the format, with an underscore if the name is a Python keyword.
    py::class_<PlanSpec::Move> move(m, "Move", doc("Move"));
    define_value(move);
    move.def_readonly("task", &PlanSpec::Move::task, "The task's name.")
        .def_readonly("from_", &PlanSpec::Move::from, "Name of the node before the move.")
        .def_readonly("to", &PlanSpec::Move::to, "Name of the target node.")
        .def_readonly("gpus", &PlanSpec::Move::gpus, doc("Move::gpus"))
        .def_readonly("wave", &PlanSpec::Move::wave,
                      "Number of the wave; waves run one after another, from 0.")
        .def_readonly("how", &PlanSpec::Move::how, doc("MoveMode"))
        .def_readonly("chain", &PlanSpec::Move::chain, "Number of the ejection chain; None if unknown.")
        .def_property_readonly(
            "for_",
            [](const PlanSpec::Move& x) { return x.serves.empty() ? std::nullopt : std::optional(x.serves); },
            "The vacated node that this move helps to vacate; None if unknown.")
        .def("__repr__", [](const PlanSpec::Move& x) {
            return "<gpusched.Move '" + x.task + "': '" + x.from + "' -> '" + x.to + "', wave " +
                   std::to_string(x.wave) + ">";
        });
    py::class_<PlanSpec::Placement> placement(
        m, "Placement", (doc("Placement") + "\n\nAlso unpacks as a tuple: `task, node, gpus = placement`."));
    define_value(placement);
    placement.def_readonly("task", &PlanSpec::Placement::task, "The task's name.")
        .def_readonly("node", &PlanSpec::Placement::node, "Name of the node.")
        .def_readonly("gpus", &PlanSpec::Placement::gpus, "GPUs on the node.")
        .def("__len__", [](const PlanSpec::Placement& x) { return py::len(as_tuple(x)); })
        .def(
            "__iter__",
            [](const PlanSpec::Placement& x) -> Typed<"Iterator[Any]"> { return py::iter(as_tuple(x)); })
        .def(
            "__getitem__",
            [](const PlanSpec::Placement& x, const Integer& at) -> Typed<"Any"> { return as_tuple(x)[at]; },
            py::arg("index"))
        .def(
            "__eq__",
            [](const PlanSpec::Placement& x, const py::tuple& other) { return as_tuple(x).equal(other); },
            py::is_operator(), py::prepend())
        .def("__repr__", [](const PlanSpec::Placement& x) {
            return "<gpusched.Placement '" + x.task + "' on '" + x.node + "'>";
        });

    auto disturbs = bind_record<Disturbance>(m, "Disturbance");
    disturbs.def("__str__", [](const Disturbance& d) { return to_text(d); });

    py::class_<NamedPlan> type(m, "Plan", doc("Plan"));
    type.def_property_readonly("waves", of_plan(&PlanSpec::waves), "Number of waves.")
        .def_property_readonly(
            "moves", [](const NamedPlan& p) -> Typed<"tuple[Move, ...]"> {
                if (!p.moves_tuple) {
                    py::tuple moves(p.spec.moves.size());
                    for (std::size_t i = 0; i < p.spec.moves.size(); ++i)
                        moves[i] = py::cast(p.spec.moves[i]);
                    p.moves_tuple = std::move(moves);
                }
                return p.moves_tuple;
            },
            (doc("Plan::moves") + " Every access returns the same tuple."))
        .def_property_readonly(
            "vacated_nodes", of_plan(&PlanSpec::vacated_nodes),
            "Names of the nodes that had non-daemon tasks before and have none after the plan.")
        .def_property_readonly("opened_nodes", of_plan(&PlanSpec::opened_nodes),
                               "Names of the nodes that had no non-daemon tasks before and receive some.")
        .def_property_readonly("evictions", of_plan(&PlanSpec::evictions),
                               "Names of the tasks that are evicted before the first wave.")
        .def_property_readonly("placements", of_plan(&PlanSpec::placements),
                               "Placements of pending tasks after the last wave.")
        .def_property_readonly(
            "stats",
            [](const NamedPlan& p) -> JsonObject {
                py::dict stats;
                for (const auto& [name, value] : p.spec.stats) stats[py::str(name)] = number(value);
                return stats;
            },
            "Statistics of the plan and of the search.")
        .def_property_readonly(
            "bound", [](const NamedPlan& p) -> BoundDict { return bound_dict(p.spec.bound); }, doc("Bound"))
        .def_readonly("stop_reason", &NamedPlan::stop_reason,
                      "The reason why the algorithm returned; None for a plan from a file.")
        .def_property_readonly(
            "goal", [](const NamedPlan& p) { return goal_dict(p.spec.goal); },
            "Goal of the plan, as for `consolidate`; None = no goal.")
        .def_property_readonly("goal_reached", of_plan(&PlanSpec::goal_reached),
                               "True if the plan reaches its goal; None = no goal.")
        .def_property_readonly(
            "price", of_plan(&PlanSpec::price),
            "Price of a move at which the plan was made, in thousandths of a GPU; None = moves are free.")
        .def_property_readonly("cost", of_plan(&PlanSpec::cost),
                               "Cost of the plan by parts, in GPU-seconds, as for `admit`; empty if unknown.")
        .def_property_readonly(
            "disturbs", [](const NamedPlan& p) { return disturbance(p.spec); },
            "The running pods that the plan moves or evicts, by owner and namespace; `str` gives a sentence. "
            "For a plan from a file, call `described(cluster)` first: files do not contain owners and GPUs.")
        .def_property_readonly(
            "_tasks",
            [](const NamedPlan& p) -> JsonObject {
                py::dict facts;  // owner kind or None, GPUs, job, namespace
                for (const auto& task : p.spec.tasks)
                    facts[py::str(task.name)] =
                        py::make_tuple(task.owner_kind, number(static_cast<double>(task.gpu_milli) / 1000),
                                       task.job, namespace_of(task));
                return facts;
            },
            "What the plan knows of its tasks, for tables.")
        .def_property_readonly(
            "_treatments",
            [](const NamedPlan& p) -> JsonObject {
                py::dict how;
                for (const auto& [task, treatment] : treatments(p.spec))
                    how[py::str(task)] = py::str(enum_name(treatment));
                return how;
            },
            "How the plan treats its tasks, for tables.")
        .def(
            "described",
            [](const NamedPlan& p, const ClusterPtr& cluster) {
                auto copy = p;
                copy.moves_tuple = {};
                const WithoutLock unlocked;
                describe_tasks(copy.spec, *with_brought(cluster, p));
                return copy;
            },
            py::arg("cluster"),
            documented("Returns the plan with the owners and GPUs of its tasks, which `disturbs` and tables "
                       "show. Plans of algorithms have them, plans from files do not.\n\n"
                       "Parameters\n----------\ncluster\n    the snapshot of the plan"))
        .def_property_readonly(
            "rounds",
            [](const NamedPlan& p) -> JsonObjects { return dicts_from(consolidation::rounds_of(p.spec)); },
            "Statistics of each round of the search: one dict per round, "
            "from `stats` (`round_1_moves`, ...).")
        .def_static(
            "from_json", [](const DocumentOrPath& source) { return read_plan(source); }, py::arg("source"),
            documented("Reads a `gpusched.plan` document.\n\n"
                       "Parameters\n----------\nsource\n    the path of a file, or the "
                       "document as a dict\n\n"
                       "Raises\n------\nInvalidInput\n    with all problems\n"
                       "BackendError\n    if the file cannot be read"))
        .def(
            "to_json",
            [](const NamedPlan& p, const py::none&) -> JsonObject { return parsed(plan_text(p, 0)); },
            py::arg("path") = py::none(),
            documented("Returns the `gpusched.plan` document as a dict, or writes it to a file."))
        .def(
            "to_json",
            [](const NamedPlan& p, const PathLike& path) { write_file(path_text(path), plan_text(p, 1)); },
            py::arg("path"))
        .def(
            "__eq__", [](const NamedPlan& a, const NamedPlan& b) { return a == b; }, py::is_operator())
        .def("__repr__", plan_repr);
    define_copies(type);
    using Fact = std::tuple<std::string, std::string, std::optional<std::string>, std::int64_t>;
    using State = std::tuple<py::bytes, std::optional<StopReason>, py::bytes, std::vector<Fact>>;
    define_pickling(
        type,
        [](const NamedPlan& p) {
            ClusterSpec brought;
            add(brought, p.brought);
            std::vector<Fact> facts;
            for (const auto& task : p.spec.tasks)
                facts.emplace_back(task.name, task.job, task.owner_kind, task.gpu_milli);
            return State(io::plan_to_json(p.spec, 0), p.stop_reason, io::cluster_to_json(brought, 0),
                         std::move(facts));
        },
        [](const State& state) {
            const auto& [plan, stop_reason, brought, facts] = state;
            auto snapshot = io::cluster_from_json(brought.cast<std::string>(), "<pickle>");
            NamedPlan p{io::plan_from_json(plan.cast<std::string>(), "<pickle>"), stop_reason};
            p.brought = Brought(std::move(snapshot));
            for (const auto& [name, job, owner_kind, gpu_milli] : facts)
                p.spec.tasks.push_back({name, job, owner_kind, gpu_milli});
            return p;
        });

    define_in_python<Frame>(
        type, "to_pandas", "_views.frames.plan_to_pandas",
        "Returns a pandas DataFrame with one row per step: evictions, moves by wave, placements. Columns: "
        "step, wave (-1 outside waves), task, from, to, gpus, how, chain (-1 = unknown), for, namespace, "
        "owner_kind, task_gpus.");
    define_in_python<ArrowTable>(type, "to_arrow", "_views.frames.plan_to_arrow",
                                 "Returns the table of `to_pandas` as an Arrow table (pyarrow).");
    define_in_python<py::str>(type, "_repr_html_", "_views.html.plan", "The plan as HTML, for notebooks.");

    m.def(
        "apply",
        [](const ClusterPtr& cluster, const PlanLike& plan) {
            const auto named = named_plan(plan);
            const WithoutLock unlocked;
            const auto with = with_brought(cluster, named);
            return std::make_shared<Cluster>(gpusched::apply(*with, resolve(named.spec, *with)));
        },
        py::arg("cluster"), py::arg("plan"), documented(doc("apply")));
}

}  // namespace gpusched::python
