// SPDX-License-Identifier: Apache-2.0
// The function gpusched.consolidation.frontier.
#include "consolidation/python_policies.hpp"
#include "model/cluster_views.hpp"
#include "model/plan.hpp"
#include "support/arguments.hpp"
#include "support/call.hpp"
#include "support/fields.hpp"
#include "support/keywords.hpp"
#include "support/records.hpp"

#include <gpusched/consolidation/frontier.hpp>
#include <gpusched/consolidation/options.hpp>

namespace gpusched::python {

namespace c = consolidation;

namespace {

using Axes = Typed<"matplotlib.axes.Axes | None">;

struct FrontierArguments : c::FrontierOptions {
    RuleChoice own_rule = py::none();
    ProgressLike progress = py::none();
};

struct NamedPoint {
    /// Price of the plan, in thousandths of a GPU (of a node) per unit of `move_cost`.
    std::int64_t price = 0;
    /// Moves of the plan, including intermediate moves.
    std::int64_t moves = 0;
    /// Cost of the moves: the sum of `move_cost` over the tasks that end on another node.
    std::int64_t relocation_cost = 0;
    /// Number of vacated nodes.
    std::int64_t vacated_nodes = 0;
    /// Healthy GPUs of the vacated nodes.
    std::int64_t vacated_gpus = 0;
    /// Weight of the vacated nodes: their GPUs, or 1 each.
    std::int64_t vacated_weight = 0;
    /// Upper bound on the weight that a plan vacates at no more cost of moves and opened nodes.
    std::int64_t weight_at_most = 0;
    /// The bound `weight_at_most` in GPUs; None with objective 'nodes' and without bounds.
    std::optional<std::int64_t> vacated_gpus_at_most{};
    /// 1000 x `vacated_weight` - `price` x `relocation_cost`, minus the cost of opened nodes.
    std::int64_t value_milli = 0;
    /// Upper bound on the value of every plan at this price.
    std::int64_t value_at_most_milli = 0;
    /// The plan.
    NamedPlan plan;
};
template <class F>
constexpr void visit_fields(std::type_identity<NamedPoint>, F&& field) {
    field("price", &NamedPoint::price);
    field("moves", &NamedPoint::moves);
    field("relocation_cost", &NamedPoint::relocation_cost);
    field("vacated_nodes", &NamedPoint::vacated_nodes);
    field("vacated_gpus", &NamedPoint::vacated_gpus);
    field("vacated_weight", &NamedPoint::vacated_weight);
    field("weight_at_most", &NamedPoint::weight_at_most);
    field("vacated_gpus_at_most", &NamedPoint::vacated_gpus_at_most);
    field("value_milli", &NamedPoint::value_milli);
    field("value_at_most_milli", &NamedPoint::value_at_most_milli);
    field("plan", &NamedPoint::plan);
}
struct NamedFrontier {
    /// Points by ascending cost of their moves, and therefore by ascending vacated weight.
    std::vector<NamedPoint> points;
    /// 'counting' or 'lp'; empty without bounds.
    std::string bound_method;
    /// The reason why the search ended.
    StopReason stop_reason{};
};
template <class F>
constexpr void visit_fields(std::type_identity<NamedFrontier>, F&& field) {
    field("points", &NamedFrontier::points);
    field("bound_method", &NamedFrontier::bound_method);
    field("stop_reason", &NamedFrontier::stop_reason);
}

NamedFrontier named(const Cluster& cluster, const c::Frontier& frontier, c::Objective objective) {
    NamedFrontier result{{}, frontier.bound_method, frontier.stop_reason};
    for (const auto& point : frontier.points) {
        const auto& stats = point.result.stats;
        const bool gpus = objective == c::Objective::gpus && !frontier.bound_method.empty();
        result.points.push_back(
            {stats.price, stats.moves, stats.relocation_cost, stats.vacated_nodes, stats.vacated_gpus,
             stats.vacated_weight, point.weight_at_most,
             gpus ? std::optional(point.weight_at_most) : std::nullopt, stats.value_milli,
             point.value_at_most_milli,
             NamedPlan{to_spec(point.result.plan, cluster, c::to_stats(stats)), point.result.stop_reason}});
    }
    return result;
}

}  // namespace

void bind_frontier(py::module_& m) {
    bind_record<NamedPoint>(m, "FrontierPoint", doc("consolidation::FrontierPoint"));
    auto frontier = bind_record<NamedFrontier>(m, "Frontier", doc("consolidation::Frontier"));
    frontier.def("__len__", [](const NamedFrontier& f) { return f.points.size(); });
    frontier.def(
        "__getitem__",
        [](const NamedFrontier& f, std::int64_t i) -> const NamedPoint& {
            const auto count = static_cast<std::int64_t>(f.points.size());
            if (i < -count || i >= count)
                throw py::index_error("point " + std::to_string(i) + "; there are " + std::to_string(count));
            return f.points[static_cast<std::size_t>(i < 0 ? i + count : i)];
        },
        py::arg("index"), py::return_value_policy::copy);
    define_in_python<Frame>(frontier, "to_pandas", "_views.frames.frontier_to_pandas",
                            "A pandas DataFrame with one row per point, without the plans.");
    frontier.def(
        "plot", [](const py::object& self, const Axes& ax) -> Typed<"matplotlib.axes.Axes"> {
            return py::module_::import("gpusched.plotting").attr("plot_frontier")(self, ax);
        },
        py::arg("ax") = py::none(),
        documented("Draws the vacated weight over the cost of the moves, and its upper bound "
                   "(`plotting.plot_frontier`). Returns the axes."));
    const auto keywords = Keywords<FrontierArguments>()
                              .fields<c::FrontierOptions>()
                              .without({"polish_time", "goal"})
                              .field("rule", &FrontierArguments::own_rule, rule_text)
                              .field("progress", &FrontierArguments::progress, progress_text)
                              .shared_as("consolidation.frontier");
    m.def(
        "frontier",
        [keywords](const ClusterPtr& cluster, const py::kwargs& given) {
            Problems problems;
            const auto arguments = read_options(keywords, "frontier", given, cluster, problems);
            return Call(arguments.progress).run([&](const Context& context) {
                return named(*cluster, c::frontier(*cluster, arguments, context), arguments.objective);
            });
        },
        py::arg("cluster"), keywords.documented(doc("consolidation::frontier")));
}

}  // namespace gpusched::python
