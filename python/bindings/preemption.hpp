// What the units of gpusched.preemption share: decisions with names, and their options.
#pragma once

#include "cluster_views.hpp"
#include "keywords.hpp"

#include <gpusched/preemption/preempt.hpp>
#include <gpusched/preemption/standby.hpp>

#include <cstdint>
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
    /// Whom to evict there, in snapshot order; empty = it fits as it is.
    std::vector<std::string> victims;
    /// The GPUs that it takes.
    std::vector<int> gpus;
    /// Of these GPUs: "numa", "socket" or "cross".
    Name<topology::GpuLocality> topology;
    /// Equation 1; absent for spot policies and without victims
    std::optional<double> score;
    /// of the victims
    std::int64_t priority_sum = 0;
    /// Work lost, in GPU-seconds.
    double cost = 0;
    /// the preemptor is a daemon, and with the victims the last other tasks leave the node
    bool vacates = false;
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
    field("vacates", &NamedDecision::vacates);
    field("proven", &NamedDecision::proven);
}

NamedDecision named_decision(const Cluster& cluster, TaskId task, const preemption::Decision& d, bool proven);

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

/// What decisions are made by; `cost_function` is not yet among the options, since it is asked about a snapshot.
struct DecisionArguments : preemption::Options {
    Typed<"Callable[[Cluster, Task, int], float] | None"> cost_function = py::none();
};

/// Makes `cost_function`, if there is one, the options' cost, asked about tasks of that snapshot.
/// @throws InvalidInput when it cannot be called
void use_cost_function(DecisionArguments& arguments, const ClusterPtr& cluster);

/// The keywords of decisions, for options that are or extend DecisionArguments.
template <class O = DecisionArguments>
Keywords<O> decision_options() {
    return Keywords<O>().template fields<preemption::Options>().field(
        "cost", &DecisionArguments::cost_function,
        "What evicting a task loses: a callable (cluster, task, now) that answers GPU-seconds, at "
        "least 0, "
        "for a `Task` and seconds; None for `lost_work`. It must depend on its arguments alone.");
}

/// Warns that a limit cut the search short.
void warn_of_limit(StopReason reason, const char* consequence);

/// Adds gangs of preemptors, and Standby's leases, to gpusched.preemption.
void bind_preempt_gang(py::module_& m);
void bind_standby(py::module_& m);

}  // namespace gpusched::python
