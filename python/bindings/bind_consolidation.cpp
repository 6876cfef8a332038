// gpusched.consolidation.
#include "arguments.hpp"
#include "call.hpp"
#include "cluster_views.hpp"
#include "gangs.hpp"
#include "keywords.hpp"
#include "plan.hpp"
#include "python_policies.hpp"
#include "records.hpp"

#include <gpusched/consolidation/bound.hpp>
#include <gpusched/consolidation/consolidate.hpp>
#include <gpusched/consolidation/explain.hpp>
#include <gpusched/consolidation/make_room.hpp>
#include <gpusched/consolidation/named.hpp>
#include <gpusched/consolidation/value_report.hpp>

namespace gpusched::python {

namespace c = consolidation;

namespace {

using PolicyChoice = Typed<"Mapping[str, str | Callable[[Cluster], numpy.typing.ArrayLike]] | None">;

struct ConsolidateArguments : c::Options {
    PolicyChoice policies = py::none();
    ProgressLike progress = py::none();
};

/// The options that keywords give. Bad values, unknown nodes and values out of range are reported together.
/// @param problems what was found before
template <class A>
A read_options(const Keywords<A>& keywords, const char* function, const py::kwargs& given,
               const Cluster& cluster, Problems& problems) {
    auto arguments = keywords.read(function, given, problems, &cluster);
    collect(problems, [&] { c::validate(arguments, cluster); });
    problems.throw_if_any();
    return arguments;
}

/// What every call that judges nodes and tasks takes.
Keywords<ConsolidateArguments> scope_keywords() {
    return Keywords<ConsolidateArguments>().fields<c::Options>(
        {"max_disrupted", "protect_core_members", "clear", "exempt"});
}

struct NamedBlocker {
    /// The task's name.
    std::string task;
    /// Why it must stay: 'locked', 'standby', 'cpu_local', 'exempt node', 'max_disrupted is 0', 'core member', or
    /// '' for a task that may move but has nowhere to go.
    std::string fixed_by;
    /// For a task that may move but has nowhere to go: over all nodes that may receive it, the obstacle that stands
    /// in the way of most, and how many nodes that is. Obstacles on nodes of its kind come before those of other
    /// kinds.
    std::string obstacle;
    /// On how many nodes that obstacle stands.
    std::size_t nodes_with_obstacle = 0;
    /// Of how many.
    std::size_t nodes_looked_at = 0;
};
template <class F>
constexpr void visit_fields(std::type_identity<NamedBlocker>, F&& field) {
    field("task", &NamedBlocker::task);
    field("fixed_by", &NamedBlocker::fixed_by);
    field("obstacle", &NamedBlocker::obstacle);
    field("nodes_with_obstacle", &NamedBlocker::nodes_with_obstacle);
    field("nodes_looked_at", &NamedBlocker::nodes_looked_at);
}
struct NodeExplanation {
    /// The node's name.
    std::string node;
    /// What became of a node.
    std::string fate;
    /// The tasks of its own that keep it occupied.
    std::vector<NamedBlocker> blockers;
    /// tasks that the plan moves onto the node
    std::vector<std::string> received;
    /// the same in words, with names
    std::string text;
};
template <class F>
constexpr void visit_fields(std::type_identity<NodeExplanation>, F&& field) {
    field("node", &NodeExplanation::node);
    field("fate", &NodeExplanation::fate);
    field("blockers", &NodeExplanation::blockers);
    field("received", &NodeExplanation::received);
    field("text", &NodeExplanation::text);
}

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
    define_record(blocker);
    using E = NodeExplanation;
    py::class_<E> explanation(m, "Explanation",
                              "Why a node did or did not become empty; `str` tells it in words.");
    define_record(explanation);
    explanation.def("__str__", [](const E& e) { return e.text; });
    define_in_python<Frame>(
        explanation, "to_pandas", "_frames.explanation_to_pandas",
        "A pandas frame with one row for each blocker, and the node and its fate in every row.");
    define_in_python<py::str>(explanation, "_repr_html_", "_html.explanation",
                              "The explanation as notebooks show it.");
    const auto keywords = scope_keywords();
    m.def(
        "explain",
        [keywords](const ClusterPtr& cluster, const PlanLike& plan, const Typed<"str">& node,
                   const py::kwargs& given) {
            Problems problems;
            NodeId found{};
            collect(problems, [&] { found = OptionType<NodeId>::read("node", node, *cluster); });
            const auto o = read_options(keywords, "explain", given, *cluster, problems);
            const auto spec = plan_argument(plan);
            return unlocked(
                [&] { return named(*cluster, c::explain(*cluster, resolve(spec, *cluster), found, o)); });
        },
        py::arg("cluster"), py::arg("plan"), py::arg("node"),
        keywords.documented("explain(cluster, plan, node", doc("consolidation::explain")).c_str());
}

void bind_value_report(py::module_& m) {
    using V = c::ModelValue;
    py::class_<V> model(m, "ModelValue", doc("consolidation::ModelValue").c_str());
    define_record(model);
    using R = c::ValueReport;
    py::class_<R> report(m, "ValueReport", "Costs and gains of a plan; `str` tells them in words.");
    define_record(report);
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
    const auto keywords =
        Keywords<A>()
            .field("level", &A::level,
                   doc("allocation::AllocateOptions::level") + "; \"node\" = every node for itself")
            .field("mode", &A::mode, doc("allocation::AllocateOptions::mode"))
            .fields<c::Options>({"max_moves", "max_move_cost", "max_disrupted", "max_moves_per_wave",
                                 "max_moves_per_node", "protect_core_members", "exempt", "depth", "seed",
                                 "time_limit"})
            .field("progress", &A::progress, progress_text)
            .shared_as("consolidation.make_room");
    m.def(
        "make_room",
        [keywords](const ClusterPtr& cluster, const JobLike& job,
                   const py::kwargs& given) -> std::optional<NamedPlan> {
            Problems problems;
            const auto arguments = read_options(keywords, "make_room", given, *cluster, problems);
            const auto argument = job_argument(job, cluster.get());
            const auto with = in_cluster(cluster, {argument});
            auto how = argument.options;
            how.groups = with.jobs.front().groups;
            if (!arguments.level.is_none()) how.level = read_level("level", arguments.level);
            if (arguments.mode) how.mode = arguments.mode;
            return Call(arguments.progress).run([&](const Context& context) -> std::optional<NamedPlan> {
                const auto room =
                    c::make_room(*with.cluster, with.jobs.front().pods, how, arguments, context);
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
        keywords
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
    const auto keywords = Keywords<ConsolidateArguments>()
                              .fields<c::Options>()
                              .field("policies", &ConsolidateArguments::policies,
                                     "Policies in place of the preset's, such as {\"node_order\": "
                                     "\"fewest_pods\"}; `policy_names()` has the kinds and their names. A "
                                     "node_order, a partitioner and a weight may be a callable (cluster) "
                                     "that answers one whole number for each node: a key, lower = tried "
                                     "earlier; the number of its group, negative = none; what it is worth, "
                                     "at least 0.")
                              .field("progress", &ConsolidateArguments::progress, progress_text)
                              .shared_as("consolidation.consolidate");
    m.def(
        "consolidate",
        [keywords](const ClusterPtr& cluster, const py::kwargs& given) {
            Problems problems;
            const auto arguments = read_options(keywords, "consolidate", given, *cluster, problems);
            std::optional<ChosenPolicies> policies;
            if (!arguments.policies.is_none()) policies = chosen_policies(arguments.policies, cluster);
            return Call(arguments.progress).run([&](const Context& context) {
                const auto result = policies ? c::consolidate_by_name(*cluster, policies->names, arguments,
                                                                      context, policies->known)
                                             : c::consolidate(*cluster, arguments, context);
                return NamedPlan{to_spec(result.plan, *cluster, c::to_stats(result.stats)),
                                 result.stop_reason};
            });
        },
        py::arg("cluster"),
        keywords.documented("consolidate(cluster", doc("consolidation::consolidate")).c_str());

    m.def(
        "policy_names", []() -> Typed<"dict[str, list[str]]"> {
            py::dict names;
            visit_fields(std::type_identity<c::PolicyNames>{}, [&](const char* kind, auto, const auto&...) {
                names[kind] = c::policy_names(kind);
            });
            return names;
        },
        documented("policy_names()", "By kind of policy: the names that `policies` of `consolidate` knows.")
            .c_str());

    const auto scope = scope_keywords()
                           .field("time_limit", &ConsolidateArguments::time_limit,
                                  "Seconds, >= 0, after which \"lp\" falls back to counting.")
                           .field("progress", &ConsolidateArguments::progress, progress_text);
    m.def(
        "bound",
        [scope](const ClusterPtr& cluster, const Name<c::BoundMethod>& method,
                const py::kwargs& given) -> BoundDict {
            const auto which = OptionType<c::BoundMethod>::read("method", method);
            Problems problems;
            const auto arguments = read_options(scope, "bound", given, *cluster, problems);
            return bound_dict(Call(arguments.progress).run([&](const Context& context) {
                return c::bound(*cluster, which, arguments, context);
            }));
        },
        py::arg("cluster"), py::arg("method") = "counting",
        scope.documented("bound(cluster, method='counting'", doc("consolidation::bound")).c_str());
    bind_explain(m);
    bind_value_report(m);
    bind_make_room(m);
}

}  // namespace gpusched::python
