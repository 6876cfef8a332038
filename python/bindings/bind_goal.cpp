// gpusched.consolidation.reach_goal.
#include "arguments.hpp"
#include "call.hpp"
#include "cluster_views.hpp"
#include "keywords.hpp"
#include "plan.hpp"
#include "python_policies.hpp"
#include "records.hpp"

#include <gpusched/consolidation/goal.hpp>
#include <gpusched/consolidation/options.hpp>

namespace gpusched::python {

namespace c = consolidation;

namespace {

struct GoalArguments : c::GoalOptions {
    RuleChoice own_rule = py::none();
    ProgressLike progress = py::none();
};

struct NamedGoal {
    /// The plan that comes closest to the goal; empty where the goal is reached without one.
    NamedPlan plan;
    /// Empty nodes, or places, before the plan.
    std::int64_t available_before = 0;
    /// The same after it.
    std::int64_t available_after = 0;
    /// Whether at least `count` are there afterwards.
    bool goal_reached = false;
};
template <class F>
constexpr void visit_fields(std::type_identity<NamedGoal>, F&& field) {
    field("plan", &NamedGoal::plan);
    field("available_before", &NamedGoal::available_before);
    field("available_after", &NamedGoal::available_after);
    field("goal_reached", &NamedGoal::goal_reached);
}

}  // namespace

void bind_goal(py::module_& m) {
    py::class_<NamedGoal> goal(m, "GoalResult", doc("consolidation::GoalResult").c_str());
    define_record(goal);
    const auto keywords = Keywords<GoalArguments>()
                              .fields<c::GoalOptions>()
                              .without({"polish_time", "objective"})
                              .field("rule", &GoalArguments::own_rule, rule_text)
                              .field("progress", &GoalArguments::progress, progress_text)
                              .shared_as("consolidation.reach_goal");
    m.def(
        "reach_goal",
        [keywords](const ClusterPtr& cluster, const py::kwargs& given) {
            Problems problems;
            auto arguments = keywords.read("reach_goal", given, problems, cluster.get());
            collect(problems, [&] { c::validate(arguments, *cluster); });
            problems.throw_if_any();
            arguments.rule = chosen_rule(arguments.own_rule, cluster);
            return Call(arguments.progress).run([&](const Context& context) {
                const auto found = c::reach_goal(*cluster, arguments, context);
                return NamedGoal{
                    NamedPlan{to_spec(found.result.plan, *cluster, c::to_stats(found.result.stats)),
                              found.result.stop_reason},
                    found.available_before, found.available_after, found.goal_reached};
            });
        },
        py::arg("cluster"),
        keywords.documented("reach_goal(cluster", doc("consolidation::reach_goal")).c_str());
}

}  // namespace gpusched::python
