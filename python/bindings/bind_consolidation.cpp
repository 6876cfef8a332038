// gpusched.consolidation.
#include "arguments.hpp"
#include "call.hpp"
#include "cluster_views.hpp"
#include "gangs.hpp"
#include "options.hpp"
#include "plan.hpp"
#include "records.hpp"

#include <gpusched/consolidation/bound.hpp>
#include <gpusched/consolidation/consolidate.hpp>
#include <gpusched/consolidation/explain.hpp>
#include <gpusched/consolidation/make_room.hpp>
#include <gpusched/consolidation/value_report.hpp>

namespace gpusched::python {

namespace c = consolidation;

namespace {

/// The options in Python: nodes by name, and what the surroundings give.
struct ConsolidateArguments : c::Options {
    std::optional<std::vector<std::string>> clear_names;
    std::vector<std::string> exempt_names;
    ProgressLike progress = py::none();
};

std::vector<NodeId> find_nodes(const Cluster& cluster, const char* field,
                               const std::vector<std::string>& names, Problems& problems) {
    std::vector<NodeId> nodes;
    for (const auto& name : names) {
        try {
            nodes.push_back(cluster.find_node(name));
        } catch (const InvalidInput& error) {
            problems.add(std::string(field) + ": " + error.what());
        }
    }
    return nodes;
}

/// The options with nodes by id. Bad values, unknown nodes and values out of range are reported together.
/// @param problems what was found before
c::Options resolved(const Cluster& cluster, const ConsolidateArguments& arguments, Problems& problems) {
    c::Options options = arguments;
    if (arguments.clear_names) options.clear = find_nodes(cluster, "clear", *arguments.clear_names, problems);
    options.exempt = find_nodes(cluster, "exempt", arguments.exempt_names, problems);
    collect(problems, [&] { c::validate(options, cluster); });
    problems.throw_if_any();
    return options;
}

/// What every call that judges nodes and tasks takes.
Options<ConsolidateArguments> scope_options() {
    return Options<ConsolidateArguments>("consolidation::Options")
        .field("max_disrupted", &ConsolidateArguments::max_disrupted)
        .field("protect_core_members", &ConsolidateArguments::protect_core_members)
        .field("clear", &ConsolidateArguments::clear_names)
        .field("exempt", &ConsolidateArguments::exempt_names);
}

Options<ConsolidateArguments> consolidate_options() {
    return Options<ConsolidateArguments>("consolidation::Options")
        .field("preset", &ConsolidateArguments::preset,
               "Which set of policies runs: 'ipc' (the paper's algorithm), 'fast' or 'best' (ours).")
        .field("partition_size", &ConsolidateArguments::partition_size)
        .field("depth", &ConsolidateArguments::depth)
        .field("rounds", &ConsolidateArguments::rounds)
        .field("seed", &ConsolidateArguments::seed, "Where random choices start.")
        .field("threads", &ConsolidateArguments::threads)
        .field("time_limit", &ConsolidateArguments::time_limit)
        .field("polish_time", &ConsolidateArguments::polish_time)
        .field("max_moves", &ConsolidateArguments::max_moves)
        .field("max_move_cost", &ConsolidateArguments::max_move_cost)
        .field("max_others", &ConsolidateArguments::max_others)
        .field("max_price_ratio", &ConsolidateArguments::max_price_ratio)
        .field("max_disrupted", &ConsolidateArguments::max_disrupted)
        .field("max_moves_per_wave", &ConsolidateArguments::max_moves_per_wave)
        .field("max_moves_per_node", &ConsolidateArguments::max_moves_per_node)
        .field("protect_core_members", &ConsolidateArguments::protect_core_members)
        .field("objective", &ConsolidateArguments::objective,
               "What a vacated node is worth: its GPUs, or one.")
        .field("bound_method", &ConsolidateArguments::bound_method)
        .field("clear", &ConsolidateArguments::clear_names)
        .field("exempt", &ConsolidateArguments::exempt_names)
        .field("progress", &ConsolidateArguments::progress, progress_text);
}

struct NamedBlocker {
    std::string task, fixed_by, obstacle;
    std::size_t nodes_with_obstacle = 0, nodes_looked_at = 0;
};
struct NodeExplanation {
    std::string node, fate;
    std::vector<NamedBlocker> blockers;
    std::vector<std::string> received;
    std::string text;
};

NodeExplanation named(const Cluster& cluster, const c::Explanation& e) {
    NodeExplanation result{cluster.name(e.node), gpusched::enum_name(e.fate), {}, {}, e.text};
    for (const auto& b : e.blockers)
        result.blockers.push_back({cluster.name(b.task), gpusched::enum_name(b.fixed_by),
                                   b.fixed_by == c::FixedBy::nothing ? gpusched::enum_name(b.obstacle) : "",
                                   b.nodes_with_obstacle, b.nodes_looked_at});
    for (const auto task : e.received) result.received.push_back(cluster.name(task));
    return result;
}

void bind_explain(py::module_& m) {
    using B = NamedBlocker;
    py::class_<B> blocker(m, "Blocker", doc("consolidation::Blocker").c_str());
    define_record(
        blocker, attribute("task", &B::task, "The task's name."),
        attribute(
            "fixed_by", &B::fixed_by,
            "Why it must stay: 'locked', 'standby', 'cpu_local', 'exempt node', 'max_disrupted is 0', 'core "
            "member', or '' for a task that may move but has nowhere to go."),
        attribute("obstacle", &B::obstacle, doc("consolidation::Blocker::obstacle")),
        attribute("nodes_with_obstacle", &B::nodes_with_obstacle, "On how many nodes that obstacle stands."),
        attribute("nodes_looked_at", &B::nodes_looked_at, "Of how many."));
    using E = NodeExplanation;
    py::class_<E> explanation(m, "Explanation",
                              "Why a node did or did not become empty; `str` tells it in words.");
    define_record(explanation, attribute("node", &E::node, "The node's name."),
                  attribute("fate", &E::fate, doc("consolidation::NodeFate")),
                  attribute("blockers", &E::blockers, "The tasks of its own that keep it occupied."),
                  attribute("received", &E::received, doc("consolidation::Explanation::received")),
                  attribute("text", &E::text, doc("consolidation::Explanation::text")));
    explanation.def("__str__", [](const E& e) { return e.text; });
    const auto options = scope_options();
    m.def(
        "explain",
        [options](const ClusterPtr& cluster, const PlanLike& plan, const std::string& node,
                  const py::kwargs& keywords) {
            Problems problems;
            const auto arguments = options.read("explain", keywords, problems);
            const auto found = find_nodes(*cluster, "node", {node}, problems);
            const auto o = resolved(*cluster, arguments, problems);
            const auto spec = plan_argument(plan);
            return unlocked([&] {
                return named(*cluster, c::explain(*cluster, resolve(spec, *cluster), found.front(), o));
            });
        },
        py::arg("cluster"), py::arg("plan"), py::arg("node"),
        options.documented("explain(cluster, plan, node", doc("consolidation::explain")).c_str());
}

void bind_value_report(py::module_& m) {
    using V = c::ModelValue;
    py::class_<V> model(m, "ModelValue", doc("consolidation::ModelValue").c_str());
    define_record(model, attribute("gpu_model", &V::gpu_model, doc("consolidation::ModelValue::gpu_model")),
                  attribute("vacated_nodes", &V::vacated_nodes, "How many nodes become empty."),
                  attribute("vacated_gpus", &V::vacated_gpus, "How many GPUs they have."),
                  attribute("moved_tasks", &V::moved_tasks, doc("consolidation::ModelValue::moved_tasks")));
    using R = c::ValueReport;
    const auto text = [](const std::string& name) { return doc("consolidation::PlanStatistics::" + name); };
    const auto total = [&](const char* name, auto member) { return attribute(name, member, text(name)); };
    py::class_<R> report(m, "ValueReport", "Costs and gains of a plan; `str` tells them in words.");
    define_record(report, total("moves", &R::moves), total("moved_tasks", &R::moved_tasks),
                  total("move_cost", &R::move_cost), total("disturbed_jobs", &R::disturbed_jobs),
                  attribute("waves", &R::waves, "How many waves."),
                  attribute("first_wave_moves", &R::first_wave_moves, "Moves of the first wave."),
                  total("most_moves_at_once", &R::most_moves_at_once),
                  total("vacated_nodes", &R::vacated_nodes), total("vacated_gpus", &R::vacated_gpus),
                  total("vacated_domains", &R::vacated_domains),
                  attribute("not_fully_occupied_before", &R::not_fully_occupied_before,
                            "Nodes with a task and an idle GPU, before."),
                  attribute("not_fully_occupied_after", &R::not_fully_occupied_after, "The same, after."),
                  attribute("models", &R::models, doc("consolidation::ValueReport::models")));
    report.def_property_readonly("vacated_gpus_per_move", &R::vacated_gpus_per_move,
                                 "GPUs vacated per move.");
    report.def_property_readonly("vacated_nodes_per_move", &R::vacated_nodes_per_move,
                                 "Nodes vacated per move.");
    report.def("__str__", [](const R& r) { return c::to_text(r); });
    m.def(
        "value_report",
        [](const ClusterPtr& cluster, const PlanLike& plan) {
            const auto spec = plan_argument(plan);
            return unlocked([&] { return c::value_report(*cluster, resolve(spec, *cluster)); });
        },
        py::arg("cluster"), py::arg("plan"),
        documented("value_report(cluster, plan)", doc("consolidation::value_report")).c_str());
}

struct RoomArguments : ConsolidateArguments {
    OptionalLevel level = py::none();
    std::optional<NetworkMode> mode{};
};

void bind_make_room(py::module_& m) {
    using A = RoomArguments;
    const auto options =
        Options<A>("consolidation::Options")
            .field("level", &A::level,
                   doc("allocation::AllocateOptions::level") + "; \"node\" = every node for itself")
            .field("mode", &A::mode, doc("allocation::AllocateOptions::mode"))
            .field("max_moves", &A::max_moves)
            .field("max_move_cost", &A::max_move_cost)
            .field("max_disrupted", &A::max_disrupted)
            .field("max_moves_per_wave", &A::max_moves_per_wave)
            .field("max_moves_per_node", &A::max_moves_per_node)
            .field("protect_core_members", &A::protect_core_members)
            .field("exempt", &A::exempt_names)
            .field("depth", &A::depth)
            .field("seed", &A::seed, "Where random choices start.")
            .field("time_limit", &A::time_limit)
            .field("progress", &A::progress, progress_text);
    m.def(
        "make_room",
        [options](const ClusterPtr& cluster, const JobLike& job,
                  const py::kwargs& keywords) -> std::optional<NamedPlan> {
            Problems problems;
            const auto arguments = options.read("make_room", keywords, problems);
            const auto o = resolved(*cluster, arguments, problems);
            const auto argument = job_argument(job);
            const auto with = in_cluster(cluster, {argument});
            auto how = argument.options;
            how.groups = with.jobs.front().groups;
            if (!arguments.level.is_none()) how.level = read_level("level", arguments.level);
            if (arguments.mode) how.mode = arguments.mode;
            return Call(arguments.progress).run([&](const Context& context) -> std::optional<NamedPlan> {
                const auto room = c::make_room(*with.cluster, with.jobs.front().pods, how, o, context);
                if (!room.allocation.placed) return std::nullopt;
                NamedPlan plan{to_spec(room.plan, *with.cluster), room.stop_reason};
                if (!argument.request.name.empty()) {  // in no snapshot yet
                    auto all = with.cluster->to_spec();
                    for (const auto pod : with.jobs.front().pods)
                        plan.new_tasks.push_back(std::move(all.tasks[index(pod)]));
                }
                plan.spec.stats = {{"moves", static_cast<double>(room.plan.moves.size())},
                                   {"move_cost", static_cast<double>(room.move_cost)},
                                   {"domains_considered", static_cast<double>(room.domains_considered)},
                                   {"entropy", room.allocation.entropy}};
                return plan;
            });
        },
        py::arg("cluster"), py::arg("job"),
        options
            .documented(
                "make_room(cluster, job",
                "Moves that let a job in which does not fit, and its placement, as one `Plan`; None when no "
                "room was found (`allocate` then says what binds).\n\n"
                "`job` is what `allocate` takes. Where it fits as it is, the plan has no moves. The plan "
                "brings along the pods of a job given as a dict, so that `verify.plan(cluster, plan)` and "
                "`apply(cluster, plan)` know them; a file of it does not, and goes with "
                "`allocation.with_job(cluster, job)`. Who may move and who may receive is as for "
                "`consolidate`.")
            .c_str());
}

}  // namespace

void bind_consolidation(py::module_& parent) {
    auto m = submodule(parent, "consolidation");
    const auto options = consolidate_options();
    m.def(
        "consolidate",
        [options](const ClusterPtr& cluster, const py::kwargs& keywords) {
            Problems problems;
            const auto arguments = options.read("consolidate", keywords, problems);
            const auto o = resolved(*cluster, arguments, problems);
            return Call(arguments.progress).run([&](const Context& context) {
                const auto result = c::consolidate(*cluster, o, context);
                return NamedPlan{c::to_spec(result, *cluster), result.stop_reason};
            });
        },
        py::arg("cluster"),
        options.documented("consolidate(cluster", doc("consolidation::consolidate")).c_str());

    const auto scope = scope_options()
                           .field("time_limit", &ConsolidateArguments::time_limit,
                                  "Seconds, >= 0, after which \"lp\" falls back to counting.")
                           .field("progress", &ConsolidateArguments::progress, progress_text);
    m.def(
        "bound",
        [scope](const ClusterPtr& cluster, const Name<c::BoundMethod>& method,
                const py::kwargs& keywords) -> BoundDict {
            const auto which = OptionType<c::BoundMethod>::read("method", method);
            Problems problems;
            const auto arguments = scope.read("bound", keywords, problems);
            const auto o = resolved(*cluster, arguments, problems);
            return bound_dict(Call(arguments.progress).run([&](const Context& context) {
                return c::bound(*cluster, which, o, context);
            }));
        },
        py::arg("cluster"), py::arg("method") = "counting",
        scope.documented("bound(cluster, method='counting'", doc("consolidation::bound")).c_str());
    bind_explain(m);
    bind_value_report(m);
    bind_make_room(m);
}

}  // namespace gpusched::python
