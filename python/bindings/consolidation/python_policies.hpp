// SPDX-License-Identifier: Apache-2.0
// Consolidation policies written in Python: functions of the cluster that return an integer per node.
#pragma once

#include "model/cluster_views.hpp"
#include "support/arguments.hpp"

#include <gpusched/consolidation/named.hpp>
#include <gpusched/consolidation/options.hpp>
#include <gpusched/consolidation/placement_rule.hpp>

namespace gpusched::python {

/// Names of consolidation policies, with the registries that resolve them.
struct ChosenPolicies {
    consolidation::PolicyNames names{};
    consolidation::Registries known = consolidation::registries();
};

/// Reads `{"node_order": "fewest_pods", "node_weight": f}`. A node order, a partitioner and a weight can be a
/// Python callable `f(cluster)` that returns an integer for each of `cluster.nodes`: an order, a group
/// number, a value. A node order is called at the start of every round with a copy of the current cluster;
/// the others are called once, here, with the snapshot. All are called on the calling thread with the
/// interpreter lock held; exceptions pass through.
/// @throws InvalidInput for unknown kinds, for values that are neither a name nor such a callable, and for
/// bad results
ChosenPolicies chosen_policies(const py::object& choice, const ClusterPtr& cluster);

using RuleChoice = Typed<"Callable[[Cluster], tuple[numpy.typing.ArrayLike, numpy.typing.ArrayLike, "
                         "numpy.typing.ArrayLike]] | None">;
inline constexpr const char* rule_text =
    "Additional constraint: a callable (cluster), called once, that returns three arrays: the "
    "class of each of cluster.tasks, the class of each of cluster.nodes, and a table of bools by "
    "class of task and class of node: True = allowed. A task that already runs on a forbidden "
    "node stays there.";

/// The rule of a Python function; no rule for None. The function is called once, here, with the interpreter
/// lock held.
/// @throws InvalidInput if it is not callable or returns a bad result
consolidation::AnyPlacementRule chosen_rule(const py::object& choice, const ClusterPtr& cluster);

/// Reads the options of the keywords. Reports bad values, unknown nodes and values out of range together.
/// @param problems earlier problems, which are reported as well
template <class A>
A read_options(const Keywords<A>& keywords, const char* function, const py::kwargs& given,
               const ClusterPtr& cluster, Problems& problems) {
    auto arguments = keywords.read(function, given, problems, cluster.get());
    collect(problems, [&] { validate(arguments, *cluster); });
    problems.throw_if_any();
    arguments.rule = chosen_rule(arguments.own_rule, cluster);
    return arguments;
}

}  // namespace gpusched::python
