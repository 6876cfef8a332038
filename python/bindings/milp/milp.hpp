// SPDX-License-Identifier: Apache-2.0
// Shared parts of the bindings of gpusched.milp.
#pragma once

#include "model/cluster_views.hpp"
#include "support/call.hpp"
#include "support/keywords.hpp"

#include <gpusched/milp/solver.hpp>

namespace gpusched::python {

/// Python arguments of a solver call, in addition to its options.
struct SolverArguments {
    /// 'auto', 'highs' (highspy, or the built-in one), 'cbc', 'scipy', or a callable (model, options) -> dict
    /// with status, x, bound. `options['go_on'](nodes)` reports progress; it returns False when the solver must
    /// stop.
    SolverLike solver = "auto";
    ProgressLike progress = py::none();
};
struct SolveArguments : milp::SolveOptions, SolverArguments {};

/// The keywords of the options and of these arguments.
template <class Arguments, Described Options>
Keywords<Arguments> solver_keywords() {
    return Keywords<Arguments>()
        .template fields<Options>()
        .field("solver", &SolverArguments::solver)
        .field("progress", &Arguments::progress, progress_text);
}

/// @throws InvalidInput for an unknown name; BackendError, which names the package to install
milp::AnySolver solver_argument(const py::object& solver);

/// Nodes by names of tasks; None means pending.
using PlacementDict = py::typing::Dict<py::str, OptionalString>;

inline PlacementDict placement_dict(const Cluster& cluster, const std::vector<NodeId>& placement) {
    py::dict result;
    for (const auto task : cluster.tasks())
        result[py::str(cluster.name(task))] = placement[index(task)] == none<NodeId>
                                                  ? py::object(py::none())
                                                  : py::object(py::str(cluster.name(placement[index(task)])));
    return result;
}

/// Tasks without an entry stay.
inline std::vector<NodeId> read_placement(const Cluster& cluster, const py::dict& places) {
    std::vector<NodeId> placement;
    Problems problems;
    for (const auto task : cluster.tasks()) placement.push_back(cluster.node_of(task));
    for (const auto& [key, value] : places) {
        collect(problems, [&, key = key, value = value] {
            const auto task = cluster.find_task(OptionType<std::string>::read("placement", key));
            placement[index(task)] =
                value.is_none() ? none<NodeId>
                                : cluster.find_node(OptionType<std::string>::read("placement", value));
        });
    }
    problems.throw_if_any();
    return placement;
}

}  // namespace gpusched::python
