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
    std::string task, node;
    std::vector<std::string> victims;
    std::vector<int> gpus;
    std::string topology;
    std::optional<double> score;
    std::int64_t priority_sum = 0;
    double cost = 0;
    bool vacates = false;
    bool proven = true;
};

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
    return Keywords<O>()
        .template fields<preemption::Options>()
        .field("cost", &DecisionArguments::cost_function,
               "What evicting a task loses: a callable (cluster, task, now) that answers GPU-seconds, at "
               "least 0, "
               "for a `Task` and seconds; None for `lost_work`. It must depend on its arguments alone.",
               "Callable[[Cluster, Task, int], float] | None");
}

/// Warns that a limit cut the search short.
void warn_of_limit(StopReason reason, const char* consequence);

/// Adds gangs of preemptors, and Standby's leases, to gpusched.preemption.
void bind_preempt_gang(py::module_& m);
void bind_standby(py::module_& m);

}  // namespace gpusched::python
