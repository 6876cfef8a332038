// Placements of all tasks of a cluster, by name.
#pragma once

#include "model/cluster_views.hpp"

namespace gpusched::python {

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
