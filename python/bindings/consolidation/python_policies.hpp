// Policies of consolidation written in Python: functions of the cluster that answer one whole number for each node.
#pragma once

#include "model/cluster_views.hpp"
#include "support/arguments.hpp"

#include <gpusched/consolidation/named.hpp>
#include <gpusched/consolidation/placement_rule.hpp>

namespace gpusched::python {

/// Policies of consolidation by name, and the registries that know these names.
struct ChosenPolicies {
    consolidation::PolicyNames names{};
    consolidation::Registries known = consolidation::registries();
};

/// Reads `{"node_order": "fewest_pods", "node_weight": f}`. A node order, a partitioner and a weight may be a Python callable
/// `f(cluster)` that answers one whole number for each node of `cluster.nodes`: a key, the number of a group, what the node is
/// worth. A node order is asked at the start of every round, with a copy of the cluster as it then is; the others once, here,
/// with the snapshot. All are asked on the calling thread, with the interpreter lock held; exceptions pass through.
/// @throws InvalidInput for unknown kinds and values that are neither a name nor such a callable, and for bad answers
ChosenPolicies chosen_policies(const py::object& choice, const ClusterPtr& cluster);

using RuleChoice = Typed<"Callable[[Cluster], tuple[numpy.typing.ArrayLike, numpy.typing.ArrayLike, "
                         "numpy.typing.ArrayLike]] | None">;
inline constexpr const char* rule_text =
    "A constraint of your own on where tasks may go: a callable (cluster), asked once, that answers three "
    "arrays: for each task of "
    "cluster.tasks the number of its class, for each node of cluster.nodes the number of its class, and a "
    "table of bools, by class of "
    "the task and class of the node: may come. What runs where it may not come stays there.";

/// The rule that a Python function makes; none for None. The function is asked once, here, with the interpreter lock held.
/// @throws InvalidInput for what cannot be called, and for bad answers
consolidation::AnyPlacementRule chosen_rule(const py::object& choice, const ClusterPtr& cluster);

}  // namespace gpusched::python
