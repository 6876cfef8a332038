// gpusched.consolidation.
#include "consolidation/python_policies.hpp"
#include "core/arguments.hpp"
#include "core/call.hpp"
#include "core/fields.hpp"
#include "core/keywords.hpp"
#include "core/records.hpp"
#include "model/cluster_views.hpp"
#include "model/plan.hpp"

#include <gpusched/consolidation/bound.hpp>
#include <gpusched/consolidation/consolidate.hpp>
#include <gpusched/consolidation/explain.hpp>
#include <gpusched/consolidation/named.hpp>
#include <gpusched/consolidation/value_report.hpp>

namespace gpusched::python {

namespace c = consolidation;

namespace {

using PolicyChoice = Typed<"Mapping[str, str | Callable[[Cluster], numpy.typing.ArrayLike]] | None">;

struct ConsolidateArguments : c::Options {
    PolicyChoice policies = py::none();
    RuleChoice own_rule = py::none();
    ProgressLike progress = py::none();
};

/// The options that keywords give. Bad values, unknown nodes and values out of range are reported together.
/// @param problems what was found before
template <class A>
A read_options(const Keywords<A>& keywords, const char* function, const py::kwargs& given,
               const ClusterPtr& cluster, Problems& problems) {
    auto arguments = keywords.read(function, given, problems, cluster.get());
    collect(problems, [&] { c::validate(arguments, *cluster); });
    problems.throw_if_any();
    arguments.rule = chosen_rule(arguments.own_rule, cluster);
    return arguments;
}

/// What every call that judges nodes and tasks takes.
Keywords<ConsolidateArguments> scope_keywords() {
    return Keywords<ConsolidateArguments>().fields<c::Options>(
        {"open_price", "max_disrupted", "protect_core_members", "clear", "exempt"});
}
/// What `explain` takes: that, and what the plan was worth its moves by.
Keywords<ConsolidateArguments> explain_keywords() {
    return scope_keywords()
        .fields<c::Options>({"price", "objective"})
        .field("rule", &ConsolidateArguments::own_rule, rule_text);
}

struct NamedChange {
    /// The node, open to moves, on which the task lacks least, and where nothing else is in the way if there is one; '' = no open node
    /// is of a kind that it accepts.
    std::string node;
    /// What it lacks there, in thousandths of a GPU; of one GPU for a fraction.
    std::int64_t gpu_milli = 0;
    /// What it lacks there, in thousandths of a core.
    std::int64_t cpu_milli = 0;
    /// What it lacks there.
    std::int64_t memory_mib = 0;
    /// What else is in the way there: it would not fit even if it lacked none of these.
    Obstacle obstacle{};
    /// A node on which it fits as it is, but onto which nothing may move; '' = there is none.
    std::string closed_node;
    /// Why nothing may move onto that; '' = there is none.
    c::ClosedBy closed_by{};
};
template <class F>
constexpr void visit_fields(std::type_identity<NamedChange>, F&& field) {
    field("node", &NamedChange::node);
    field("gpu_milli", &NamedChange::gpu_milli);
    field("cpu_milli", &NamedChange::cpu_milli);
    field("memory_mib", &NamedChange::memory_mib);
    field("obstacle", &NamedChange::obstacle);
    field("closed_node", &NamedChange::closed_node);
    field("closed_by", &NamedChange::closed_by);
}
struct NamedBlocker {
    /// The task's name.
    std::string task;
    /// Why it must stay; '' for a task that may move but has nowhere to go.
    c::FixedBy fixed_by{};
    /// For a task that may move but has nowhere to go: over all nodes that may receive it, the obstacle that stands
    /// in the way of most, and how many nodes that is. Obstacles on nodes of its kind come before those of other
    /// kinds.
    Obstacle obstacle{};
    /// On how many nodes that obstacle stands.
    std::size_t nodes_with_obstacle = 0;
    /// Of how many.
    std::size_t nodes_looked_at = 0;
    /// Nodes on which it would fit, but which the rule refuses.
    std::size_t nodes_refused = 0;
    /// The least that would have to change for it to find a place.
    NamedChange change{};
};
template <class F>
constexpr void visit_fields(std::type_identity<NamedBlocker>, F&& field) {
    field("task", &NamedBlocker::task);
    field("fixed_by", &NamedBlocker::fixed_by);
    field("obstacle", &NamedBlocker::obstacle);
    field("nodes_with_obstacle", &NamedBlocker::nodes_with_obstacle);
    field("nodes_looked_at", &NamedBlocker::nodes_looked_at);
    field("nodes_refused", &NamedBlocker::nodes_refused);
    field("change", &NamedBlocker::change);
}
struct NodeExplanation {
    /// The node's name.
    std::string node;
    /// What became of a node.
    c::NodeFate fate{};
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

NamedChange named(const Cluster& cluster, const c::LeastChange& change) {
    const auto name = [&](NodeId node) { return node == none<NodeId> ? std::string() : cluster.name(node); };
    return {name(change.node), change.gpu_milli,         change.cpu_milli, change.memory_mib,
            change.obstacle,   name(change.closed_node), change.closed_by};
}

NodeExplanation named(const Cluster& cluster, const c::Explanation& e) {
    NodeExplanation result{cluster.name(e.node), e.fate, {}, {}, e.text};
    for (const auto& b : e.blockers)
        result.blockers.push_back({cluster.name(b.task), b.fixed_by, b.obstacle, b.nodes_with_obstacle,
                                   b.nodes_looked_at, b.nodes_refused, named(cluster, b.change)});
    for (const auto task : e.received) result.received.push_back(cluster.name(task));
    return result;
}

void bind_explain(py::module_& m) {
    using L = NamedChange;
    py::class_<L> change(m, "LeastChange", doc("consolidation::LeastChange").c_str());
    define_record(change);
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
    const auto keywords = explain_keywords();
    m.def(
        "explain",
        [keywords](const ClusterPtr& cluster, const PlanLike& plan, const Typed<"str">& node,
                   const py::kwargs& given) {
            Problems problems;
            NodeId found{};
            collect(problems, [&] { found = OptionType<NodeId>::read("node", node, *cluster); });
            const auto o = read_options(keywords, "explain", given, cluster, problems);
            const auto spec = plan_argument(plan);
            return unlocked(
                [&] { return named(*cluster, c::explain(*cluster, resolve(spec, *cluster), found, o)); });
        },
        py::arg("cluster"), py::arg("plan"), py::arg("node"),
        keywords.documented("explain(cluster, plan, node", doc("consolidation::explain")).c_str());
    m.def(
        "explain_clear",
        [keywords](const ClusterPtr& cluster, const PlanLike& plan, const py::kwargs& given) {
            Problems problems;
            const auto o = read_options(keywords, "explain_clear", given, cluster, problems);
            const auto spec = plan_argument(plan);
            return unlocked([&] {
                std::vector<NodeExplanation> found;
                for (const auto& e : c::explain_clear(*cluster, resolve(spec, *cluster), o))
                    found.push_back(named(*cluster, e));
                return found;
            });
        },
        py::arg("cluster"), py::arg("plan"),
        keywords.documented("explain_clear(cluster, plan", doc("consolidation::explain_clear")).c_str());
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
                              .field("rule", &ConsolidateArguments::own_rule, rule_text)
                              .field("progress", &ConsolidateArguments::progress, progress_text)
                              .shared_as("consolidation.consolidate");
    m.def(
        "consolidate",
        [keywords](const ClusterPtr& cluster, const py::kwargs& given) {
            Problems problems;
            const auto arguments = read_options(keywords, "consolidate", given, cluster, problems);
            std::optional<ChosenPolicies> policies;
            if (!arguments.policies.is_none()) policies = chosen_policies(arguments.policies, cluster);
            return Call(arguments.progress).run([&](const Context& context) {
                const auto result =
                    policies ? c::consolidate(*cluster, policies->names, arguments, context, policies->known)
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
            const auto arguments = read_options(scope, "bound", given, cluster, problems);
            return bound_dict(Call(arguments.progress).run([&](const Context& context) {
                return c::bound(*cluster, which, arguments, context);
            }));
        },
        py::arg("cluster"), py::arg("method") = "counting",
        scope.documented("bound(cluster, method='counting'", doc("consolidation::bound")).c_str());
    bind_explain(m);
    bind_waves(m);
    bind_value_report(m);
    bind_frontier(m);
}

}  // namespace gpusched::python
