// SPDX-License-Identifier: Apache-2.0
// The module gpusched.consolidation: explanation of one move, and plans from the caller's moves.
#include "consolidation/python_policies.hpp"
#include "model/cluster_views.hpp"
#include "model/named.hpp"
#include "model/plan.hpp"
#include "support/arguments.hpp"
#include "support/fields.hpp"
#include "support/keywords.hpp"

#include <gpusched/consolidation/explain.hpp>
#include <gpusched/consolidation/options.hpp>
#include <gpusched/consolidation/waves.hpp>
#include <gpusched/core/gpu_mask.hpp>

namespace gpusched::python {

namespace c = consolidation;

namespace {

using OptionalPlan = Typed<"Plan | Mapping[str, Any] | str | PathLike[str] | None">;
using Moves = Typed<"Iterable[Sequence[Any] | Move]">;

struct MoveArguments : c::Options {
    OptionalPlan plan = py::none();
    RuleChoice own_rule = py::none();
};

struct NamedOrder {
    /// A valid plan of the possible moves, including intermediate moves.
    NamedPlan plan;
    /// For each move that the plan omits, its obstacle after the plan, in the order of the list; `str` gives
    /// it in words.
    std::vector<Named<c::MoveExplanation>> dropped;
};
template <class F>
constexpr void visit_fields(std::type_identity<NamedOrder>, F&& field) {
    field("plan", &NamedOrder::plan);
    field("dropped", &NamedOrder::dropped);
}

/// Reads one move of the list: (task, node), (task, node, gpus), or the move of a plan.
c::WantedMove wanted_move(const std::string& owner, py::handle value, const Cluster& cluster) {
    if (py::isinstance<PlanSpec::Move>(value)) {
        const auto& move = value.cast<const PlanSpec::Move&>();
        return wanted_move(owner, py::make_tuple(move.task, move.to, move.gpus), cluster);
    }
    if (py::isinstance<py::str>(value) || !py::isinstance<py::sequence>(value) || py::len(value) < 2 ||
        py::len(value) > 3)
        bad_option(owner, value, "(task, node), (task, node, gpus) or a Move");
    const auto parts = py::reinterpret_borrow<py::sequence>(value);
    Problems problems;
    c::WantedMove move;
    collect(problems,
            [&] { move.task = OptionType<TaskId>::read(owner + ": task", names_of(parts[0]), cluster); });
    collect(problems,
            [&] { move.to = OptionType<NodeId>::read(owner + ": node", names_of(parts[1]), cluster); });
    problems.throw_if_any();
    if (py::len(value) < 3 || parts[2].is_none()) return move;
    const auto gpus = OptionType<std::vector<int>>::read(owner + ": gpus", parts[2]);
    const int count = cluster.gpu_count(move.to) + gpu_count(cluster.devices(move.to));
    move.gpus = gpu_mask(
        gpus, count,
        [&](int gpu) {
            const auto node = "node " + gpusched::quoted(cluster.name(move.to));
            problems.add(bad_value("gpus", std::to_string(gpu),
                                   count == 0 ? "none, because " + node + " has no GPUs"
                                              : "GPUs of " + node + ", 0 to " + std::to_string(count - 1),
                                   owner));
        },
        [&](int gpu) { problems.add(owner + ": gpus: GPU " + std::to_string(gpu) + " is named twice"); });
    problems.throw_if_any();
    return move;
}

void bind_explain_move(py::module_& m) {
    auto move = bind_record<Named<c::MoveExplanation>>(
        m, "MoveExplanation", "Obstacles and effects of one move; `str` gives them in words.");
    move.def("__str__", [](const py::object& self) { return py::str(self.attr("text")); });
    const auto keywords =
        Keywords<MoveArguments>()
            .fields<c::Options>({"open_price", "max_disrupted", "protect_core_members", "clear", "exempt",
                                 "price", "objective"})
            .field(
                "plan", &MoveArguments::plan,
                "Plan that is applied before the move: a Plan, a dict or the path of a file; None = no plan.")
            .field("rule", &MoveArguments::own_rule, rule_text)
            .shared_as("consolidation.explain_move");
    m.def(
        "explain_move",
        [keywords](const ClusterPtr& cluster, const Typed<"str | Task">& task,
                   const Typed<"str | Node">& node, const py::kwargs& given) {
            Problems problems;
            // First, because it may add pods.
            const auto plan = given.contains("plan") ? py::object(given["plan"]) : py::none();
            const auto named = plan.is_none() ? NamedPlan() : named_plan(plan);
            const auto with = with_brought(cluster, named);
            auto o = keywords.read("explain_move", given, problems, with.get());
            TaskId which{};
            NodeId to{};
            collect(problems, [&] { which = OptionType<TaskId>::read("task", names_of(task), *with); });
            collect(problems, [&] { to = OptionType<NodeId>::read("node", names_of(node), *with); });
            collect(problems, [&] { c::validate(o, *with); });
            problems.throw_if_any();
            o.rule = chosen_rule(o.own_rule, with);
            return with_names(*with, unlocked([&] {
                return c::explain_move(*with, which, to, o, resolve(named.spec, *with));
            }));
        },
        py::arg("cluster"), py::arg("task"), py::arg("node"),
        keywords.documented(doc("consolidation::explain_move")));
}

constexpr auto order_text =
    R"(Makes a plan of given moves: orders them into waves, chooses GPUs, and drops moves that are not
possible.

Of several moves of one task, the last counts. A wave takes every move that fits while all sources of the
wave are still held, in the order of the list. If moves wait for each other in a cycle, one of them moves to
a temporary node first. If that is not possible, the first of them is tried again after the others, and
dropped if it still does not fit. No task moves to a node that was empty before the plan, unless open_price
allows it.

Parameters
----------
moves
    (task, node) or (task, node, gpus), with names or objects and a list of GPUs; without gpus, the tightest
    GPUs are chosen. Moves of plans (Move) are also accepted; their waves are ignored

Returns
-------
the plan, which `verify.plan` accepts, and the obstacle of each dropped move

Raises
------
InvalidInput
    for tasks, nodes and GPUs that do not exist, and options out of range)";

void bind_order_into_waves(py::module_& m) {
    bind_record<NamedOrder>(m, "OrderedMoves", doc("consolidation::OrderedMoves"));
    const auto keywords =
        Keywords<MoveArguments>()
            .fields<c::Options>({"price", "open_price", "max_disrupted", "max_moves_per_wave",
                                 "max_moves_per_node", "protect_core_members", "record_chains", "objective",
                                 "clear", "exempt"})
            .field("rule", &MoveArguments::own_rule, rule_text);
    m.def(
        "order_into_waves",
        [keywords](const ClusterPtr& cluster, const Moves& moves, const py::kwargs& given) {
            Problems problems;
            std::vector<c::WantedMove> wanted;
            require_list("moves", moves, "a list of (task, node), (task, node, gpus) or Move");
            std::size_t i = 0;
            for (const auto& move : moves)
                collect(problems, [&, m = move] {
                    wanted.push_back(wanted_move("moves[" + std::to_string(i++) + "]", m, *cluster));
                });
            const auto o = read_options(keywords, "order_into_waves", given, cluster, problems);
            const auto ordered = unlocked([&] { return c::order_into_waves(*cluster, wanted, o); });
            NamedOrder result{
                NamedPlan{to_spec(ordered.result.plan, *cluster, c::to_stats(ordered.result.stats)),
                          ordered.result.stop_reason},
                {}};
            for (const auto& dropped : ordered.dropped)
                result.dropped.push_back(with_names(*cluster, dropped.why));
            return result;
        },
        py::arg("cluster"), py::arg("moves"), keywords.documented(order_text));
}

}  // namespace

void bind_waves(py::module_& m) {
    bind_explain_move(m);
    bind_order_into_waves(m);
}

}  // namespace gpusched::python
