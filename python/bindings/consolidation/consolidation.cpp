// SPDX-License-Identifier: Apache-2.0
// The module gpusched.consolidation.
#include "consolidation/python_policies.hpp"
#include "model/cluster_views.hpp"
#include "model/named.hpp"
#include "model/plan.hpp"
#include "support/arguments.hpp"
#include "support/call.hpp"
#include "support/fields.hpp"
#include "support/keywords.hpp"

#include <gpusched/consolidation/bounds.hpp>
#include <gpusched/consolidation/consolidate.hpp>
#include <gpusched/consolidation/explain.hpp>
#include <gpusched/consolidation/named.hpp>
#include <gpusched/consolidation/options.hpp>
#include <gpusched/consolidation/replan.hpp>
#include <gpusched/consolidation/result.hpp>

namespace gpusched::python {

// The parts of the module in other files.
void bind_frontier(py::module_& m);
void bind_maintenance(py::module_& m);
void bind_waves(py::module_& m);

namespace c = consolidation;

namespace {

using PolicyChoice = Typed<"Mapping[str, str | Callable[[Cluster], numpy.typing.ArrayLike]] | None">;

struct ConsolidateArguments : c::Options {
    /// Policies that replace the preset's, such as {"node_order": "fewest_pods"}; `policy_names()` lists kinds
    /// and names. A node_order, a partitioner and a node_weight can be a callable (cluster) that returns an
    /// integer per node: its order (lower first), its group (negative = none), its value (at least 0).
    PolicyChoice policies = py::none();
    RuleChoice own_rule = py::none();
    ProgressLike progress = py::none();
};

/// The options of every function that judges nodes and tasks.
Keywords<ConsolidateArguments> scope_keywords() {
    return Keywords<ConsolidateArguments>().fields<c::Options>(
        {"open_price", "max_disrupted", "protect_core_members", "clear", "exempt"});
}
/// The options of `explain`: these, and the price of moves for the plan.
Keywords<ConsolidateArguments> explain_keywords() {
    return scope_keywords()
        .fields<c::Options>({"price", "objective"})
        .field("rule", &ConsolidateArguments::own_rule, rule_text);
}

void bind_explain(py::module_& m) {
    bind_record<Named<c::LeastChange>>(m, "LeastChange");
    bind_record<Named<c::Blocker>>(m, "Blocker");
    using E = Named<c::Explanation>;
    auto explanation = bind_record<E>(
        m, "Explanation", "The reason why a node did or did not become empty; `str` gives it in words.");
    explanation.def("__str__", [](const py::object& self) { return py::str(self.attr("text")); });
    define_in_python<Frame>(
        explanation, "to_pandas", "_views.frames.explanation_to_pandas",
        "A pandas DataFrame with one row per blocker; every row has the node and its fate.");
    define_in_python<py::str>(explanation, "_repr_html_", "_views.html.explanation",
                              "The explanation as HTML, for notebooks.");
    const auto keywords = explain_keywords();
    m.def(
        "explain",
        [keywords](const ClusterPtr& cluster, const PlanLike& plan, const Typed<"str | Node">& node,
                   const py::kwargs& given) {
            const auto named = named_plan(plan);
            const auto with = with_brought(cluster, named);
            Problems problems;
            NodeId found{};
            collect(problems, [&] { found = OptionType<NodeId>::read("node", names_of(node), *with); });
            const auto o = read_options(keywords, "explain", given, with, problems);
            return with_names(
                *with, unlocked([&] { return c::explain(*with, resolve(named.spec, *with), found, o); }));
        },
        py::arg("cluster"), py::arg("plan"), py::arg("node"),
        keywords.documented(doc("consolidation::explain")));
    m.def(
        "explain_clear",
        [keywords](const ClusterPtr& cluster, const PlanLike& plan, const py::kwargs& given) {
            const auto named = named_plan(plan);
            const auto with = with_brought(cluster, named);
            Problems problems;
            const auto o = read_options(keywords, "explain_clear", given, with, problems);
            return with_names(
                *with, unlocked([&] { return c::explain_clear(*with, resolve(named.spec, *with), o); }));
        },
        py::arg("cluster"), py::arg("plan"), keywords.documented(doc("consolidation::explain_clear")));
}

void bind_value_report(py::module_& m) {
    using V = c::ModelValue;
    bind_record<V>(m, "ModelValue");
    using R = c::ValueReport;
    auto report = bind_record<R>(m, "ValueReport", "Costs and gains of a plan; `str` gives them in words.");
    report.def_property_readonly("vacated_gpus_per_move", &R::vacated_gpus_per_move,
                                 "Vacated GPUs per move.");
    report.def_property_readonly("vacated_nodes_per_move", &R::vacated_nodes_per_move,
                                 "Vacated nodes per move.");
    report.def("__str__", [](const R& r) { return c::to_text(r); });
    m.def(
        "value_report",
        [](const ClusterPtr& cluster, const PlanLike& plan) {
            const auto named = named_plan(plan);
            return unlocked([&] {
                const auto with = with_brought(cluster, named);
                return c::value_report(*with, resolve(named.spec, *with));
            });
        },
        py::arg("cluster"), py::arg("plan"), documented(doc("consolidation::value_report")));
}

/// @throws TypeError if a kind of policy is given as a separate keyword
void refuse_kinds(const py::kwargs& given) {
    visit_fields(std::type_identity<c::PolicyNames>{}, [&](const char* kind, auto, const auto&...) {
        if (given.contains(kind))
            throw py::type_error(std::string("consolidate() got an unexpected keyword argument '") + kind +
                                 "'; write policies={'" + kind + "': ...}");
    });
}

NamedPlan named(const Cluster& cluster, const c::Result& result) {
    return {to_spec(result.plan, cluster, c::to_stats(result.stats)), result.stop_reason};
}

}  // namespace

void bind_consolidation(py::module_& parent) {
    auto m = submodule(parent, "consolidation");
    const auto again = Keywords<ConsolidateArguments>()
                           .fields<c::Options>()
                           .field("rule", &ConsolidateArguments::own_rule, rule_text)
                           .field("progress", &ConsolidateArguments::progress, progress_text)
                           .group("search", "Options of the search for experts.",
                                  {"partition_size", "depth", "rounds", "polish_time", "max_others",
                                   "bound_method", "record_chains"});
    const auto keywords = Keywords(again)
                              .field("policies", &ConsolidateArguments::policies)
                              .shared_as("consolidation.consolidate");
    const auto judged = explain_keywords();
    Keywords<Goal>().fields().shared_as("model.Goal");  // not a function: the fields of the console's --goal
    Keywords<SlotShape>().fields().shared_as("model.SlotShape");
    m.def(
        "consolidate",
        [keywords](const ClusterPtr& cluster, const py::kwargs& given) {
            refuse_kinds(given);
            Problems problems;
            const auto arguments = read_options(keywords, "consolidate", given, cluster, problems);
            std::optional<ChosenPolicies> policies;
            if (!arguments.policies.is_none()) policies = chosen_policies(arguments.policies, cluster);
            return Call(arguments.progress).run([&](const Context& context) {
                return named(*cluster, policies ? c::consolidate(*cluster, policies->names, arguments,
                                                                 context, policies->known)
                                                : c::consolidate(*cluster, arguments, context));
            });
        },
        py::arg("cluster"), keywords.documented(doc("consolidation::consolidate")));
    m.def(
        "replan",
        [again](const ClusterPtr& cluster, const PlanLike& plan, const py::kwargs& given) {
            Problems problems;
            const auto arguments = read_options(again, "replan", given, cluster, problems);
            const auto last = plan_argument(plan);
            return Call(arguments.progress).run([&](const Context& context) {
                return named(*cluster, c::replan(*cluster, last, arguments, context));
            });
        },
        py::arg("cluster"), py::arg("plan"), again.documented(doc("consolidation::replan")));
    m.def(
        "dropped_moves",
        [judged](const ClusterPtr& cluster, const PlanLike& last, const PlanLike& plan,
                 const py::kwargs& given) -> Typed<"list[tuple[Move, str]]"> {
            Problems problems;
            const auto arguments = read_options(judged, "dropped_moves", given, cluster, problems);
            const auto before = plan_argument(last), now = plan_argument(plan);
            const auto dropped = unlocked([&] { return c::dropped_moves(*cluster, before, now, arguments); });
            py::list out;
            for (const auto& one : dropped)
                out.append(py::make_tuple(py::cast(before.moves[one.move]), one.reason));
            return out;
        },
        py::arg("cluster"), py::arg("last"), py::arg("plan"),
        judged.documented(doc("consolidation::dropped_moves")));
    m.def(
        "policy_names", []() -> Typed<"dict[str, list[str]]"> {
            py::dict names;
            visit_fields(std::type_identity<c::PolicyNames>{}, [&](const char* kind, auto, const auto&...) {
                names[kind] = c::policy_names(kind);
            });
            return names;
        },
        documented("Returns the policy names for `policies` of `consolidate`, by kind."));

    const auto scope = scope_keywords()
                           .field("time_limit", &ConsolidateArguments::time_limit,
                                  "Seconds, at least 0, after which \"lp\" falls back to counting.")
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
        py::arg("cluster"), py::arg("method") = "counting", scope.documented(doc("consolidation::bound")));
    m.def(
        "goal_nodes",
        [](const ClusterPtr& cluster, const py::object& goal) {
            const auto wanted = OptionType<Goal>::read("goal", goal);
            std::vector<std::string> names;
            for (const auto node : unlocked([&] { return c::goal_nodes(*cluster, wanted); }))
                names.emplace_back(cluster->name(node));
            return names;
        },
        py::arg("cluster"), py::arg("goal"), documented(doc("consolidation::goal_nodes")));
    bind_explain(m);
    bind_waves(m);
    bind_value_report(m);
    bind_frontier(m);
    bind_maintenance(m);
}

}  // namespace gpusched::python
