// What the units of gpusched.preemption share: decisions with names, and their options.
#pragma once

#include "model/cluster_views.hpp"
#include "support/keywords.hpp"

#include <gpusched/model/plan.hpp>
#include <gpusched/preemption/preempt.hpp>
#include <gpusched/preemption/standby.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace gpusched::python {

/// A decision with names, so that it stands on its own.
struct NamedDecision {
    /// The preemptor.
    std::string task;
    /// Where it goes.
    std::string node;
    /// Whom to evict, in snapshot order; empty = it fits as it is. They run on the node, but for members elsewhere of gangs that
    /// break.
    std::vector<std::string> victims;
    /// The GPUs that it takes.
    std::vector<int> gpus;
    /// Of these GPUs.
    topology::GpuLocality topology{};
    /// Equation 1; absent for spot policies and without victims
    std::optional<double> score;
    /// of the victims
    std::int64_t priority_sum = 0;
    /// Work lost, in GPU-seconds.
    double cost = 0;
    /// Nodes that victims leave to daemons alone, in snapshot order.
    std::vector<std::string> vacated_nodes;
    /// How many more tasks of which disruption budgets are down than they allow, by name; empty unless `break_budgets`.
    std::map<std::string, std::int64_t> broken_budgets;
    /// Victims that run again, in this order; empty unless `replace_victims`.
    std::vector<PlanSpec::Placement> replaced;
    /// The policy's answer is exact: no limit was hit. Also "nothing" is then certain.
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

/// The name of a `preemption::Policy`, or a callable (cluster, task, now) that answers a whole number.
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

/// What decisions are made by; the functions are not yet among the options, since they are asked about a snapshot.
struct DecisionArguments : preemption::Options {
    VictimPolicyLike policy_choice;
    Typed<"Callable[[Cluster, Task, int], float] | None"> cost_function = py::none();
};

/// What `minimal_victim_sets` takes.
struct MinimalSetsArguments : preemption::MinimalSetsOptions {
    VictimPolicyLike policy_choice;
};

/// The policy that a caller chose; a function is asked about tasks of that snapshot.
preemption::VictimPolicy chosen_policy(const VictimPolicyLike& policy, const ClusterPtr& cluster);

/// Makes `policy_choice` the options' policy, and `cost_function`, if there is one, their cost; both are asked about tasks of that
/// snapshot.
/// @throws InvalidInput when `cost_function` cannot be called
void use_functions(DecisionArguments& arguments, const ClusterPtr& cluster);

/// The keywords of decisions, for options that are or extend DecisionArguments.
template <class O = DecisionArguments>
Keywords<O> decision_options() {
    return Keywords<O>()
        .field(
            "policy", &DecisionArguments::policy_choice,
            "How victims and node are chosen. A callable (cluster, task, now) answers a whole number for a "
            "`Task` and seconds: the potential victims of a node leave by ascending number until the "
            "preemptor fits, those who need not leave come back, and the node whose victims cost the "
            "least wins. It must depend on its arguments alone.")
        .template fields<preemption::Options>()
        .field("cost", &DecisionArguments::cost_function,
               "What evicting a task loses: a callable (cluster, task, now) that answers GPU-seconds, at "
               "least 0, "
               "for a `Task` and seconds; None for `lost_work`. It must depend on its arguments alone.");
}

/// Warns that a limit cut the search short.
void warn_of_limit(StopReason reason, const char* consequence);

/// Adds gangs of preemptors, and Standby's leases, to gpusched.preemption.

}  // namespace gpusched::python
