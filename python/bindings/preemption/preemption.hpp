// SPDX-License-Identifier: Apache-2.0
// Shared parts of the bindings of gpusched.preemption: decisions with names, and their options.
#pragma once

#include "model/cluster_views.hpp"
#include "support/keywords.hpp"

#include <gpusched/model/plan.hpp>
#include <gpusched/preemption/preempt.hpp>
#include <gpusched/preemption/standby.hpp>

namespace gpusched::python {

/// A decision with names, so that it does not depend on the cluster.
struct NamedDecision {
    /// The preempting task.
    std::string task;
    /// Its node.
    std::string node;
    /// Tasks to evict, in snapshot order; empty if the task fits without evictions. They run on the node,
    /// except for other members of gangs that stop.
    std::vector<std::string> victims;
    /// GPUs of the task.
    std::vector<int> gpus;
    /// Locality of these GPUs.
    topology::GpuLocality topology{};
    /// Score of Equation 1; absent for spot policies and without victims.
    std::optional<double> score;
    /// Sum of the victims' priorities.
    std::int64_t priority_sum = 0;
    /// Lost work in GPU-seconds.
    double cost = 0;
    /// Nodes that keep only daemons, in snapshot order.
    std::vector<std::string> vacated_nodes;
    /// Tasks down beyond the limit of each disruption budget, by name; empty unless `break_budgets` is set.
    std::map<std::string, std::int64_t> broken_budgets;
    /// New placements of victims, in this order; empty unless `replace_victims` is set.
    std::vector<PlanSpec::Placement> replaced;
    /// True if the result is exact: no limit ended the search. A negative result is then certain.
    bool proven = true;
};
template <class F>
constexpr void visit_fields(std::type_identity<NamedDecision>, F&& field) {
    field("task", &NamedDecision::task);
    field("node", &NamedDecision::node);
    field("victims", &NamedDecision::victims);
    field("gpus", &NamedDecision::gpus);
    field("topology", &NamedDecision::topology);
    field("score", &NamedDecision::score);
    field("priority_sum", &NamedDecision::priority_sum);
    field("cost", &NamedDecision::cost);
    field("vacated_nodes", &NamedDecision::vacated_nodes);
    field("broken_budgets", &NamedDecision::broken_budgets);
    field("replaced", &NamedDecision::replaced);
    field("proven", &NamedDecision::proven);
}

NamedDecision named_decision(const Cluster& cluster, TaskId task, const preemption::Decision& d, bool proven);
std::map<std::string, std::int64_t> named_budgets(const Cluster& cluster,
                                                  const std::vector<preemption::BrokenBudget>& broken);

/// None stands for the default.
template <>
struct OptionType<preemption::EvictionModel> {
    static preemption::EvictionModel read(const std::string& field, py::handle value) {
        if (value.is_none()) return {};
        if (!py::isinstance<preemption::EvictionModel>(value))
            bad_option(field, value, "a gpusched.preemption.EvictionModel or None");
        return value.cast<preemption::EvictionModel>();
    }
    static std::string literal(const preemption::EvictionModel&) { return "None"; }
    static std::string type() { return "EvictionModel | None"; }
};

/// The name of a `preemption::Policy`, or a callable (cluster, task, now) -> integer.
class VictimPolicyLike : public py::object {
  public:
    VictimPolicyLike() : py::object(py::str(preemption::Options{}.policy.name())) {}
    explicit VictimPolicyLike(py::handle value) : py::object(value, borrowed_t{}) {}
    [[nodiscard]] bool is_order() const { return PyCallable_Check(ptr()) != 0; }
};
template <>
struct OptionType<VictimPolicyLike> {
    static VictimPolicyLike read(const std::string& field, py::handle value) {
        const VictimPolicyLike policy(value);
        if (policy.is_order()) return policy;
        try {
            (void)OptionType<preemption::Policy>::read(field, value);
        } catch (const InvalidInput& error) {
            if (py::isinstance<py::str>(value)) throw;
            throw InvalidInput(std::string(error.what()) + ", or a callable (cluster, task, now)");
        }
        return policy;
    }
    static std::string literal(const VictimPolicyLike& value) { return py::repr(value); }
    static std::string type() {
        return OptionType<preemption::Policy>::type() + " | Callable[[Cluster, Task, int], int]";
    }
};

/// Options of decisions. The functions become options later, because they are called with a snapshot.
struct DecisionArguments : preemption::Options {
    /// Policy that chooses victims and node. A callable (cluster, task, now) returns an integer for a `Task` and
    /// a time in seconds: potential victims are evicted in ascending order until the task fits, unnecessary ones
    /// are kept, and the node with the least cost wins. The result must depend only on the arguments.
    VictimPolicyLike policy_choice;
    /// Lost work of an eviction: a callable (cluster, task, now) that returns GPU-seconds, at least 0, for a
    /// `Task` and a time in seconds; None for `lost_work`. The result must depend only on the arguments.
    Typed<"Callable[[Cluster, Task, int], float] | None"> cost_function = py::none();
};

/// Options of `minimal_victim_sets`.
struct MinimalSetsArguments : preemption::MinimalSetsOptions {
    /// Determines the possible victims: LP tasks for spot policies, tasks of lower priority for the others and
    /// for a callable.
    VictimPolicyLike policy_choice;
};

/// The policy of the caller; a function gets tasks of this snapshot.
preemption::VictimPolicy chosen_policy(const VictimPolicyLike& policy, const ClusterPtr& cluster);

/// Sets the policy from `policy_choice` and the cost from `cost_function`, if given; functions get tasks of
/// this snapshot.
/// @throws InvalidInput if `cost_function` is not callable
void use_functions(DecisionArguments& arguments, const ClusterPtr& cluster);

/// The keywords of decisions, for options that are or extend DecisionArguments.
template <class O = DecisionArguments>
Keywords<O> decision_options() {
    return Keywords<O>()
        .field("policy", &DecisionArguments::policy_choice, doc("python::DecisionArguments::policy_choice"))
        .template fields<preemption::Options>()
        .field("cost", &DecisionArguments::cost_function, doc("python::DecisionArguments::cost_function"));
}

/// Warns that a limit ended the search.
void warn_of_limit(StopReason reason, const char* consequence);

}  // namespace gpusched::python
