// SPDX-License-Identifier: Apache-2.0
// Checks of nodes and GPU models that several options name.
#pragma once

#include <gpusched/core/errors.hpp>
#include <gpusched/model/cluster.hpp>

#include <string>
#include <vector>

namespace gpusched::consolidation::detail {

/// Adds a problem for every node that the cluster does not have, or that is in `exempt`.
void check_nodes(Problems& problems, const char* field, const Cluster& cluster,
                 const std::vector<NodeId>& nodes, const std::vector<NodeId>& exempt = {});

/// @throws InvalidInput for a node that the cluster does not have
void require_node(const Cluster& cluster, NodeId node);

/// Returns the cluster's name of the GPU model in the field `gpu_model`; empty if `name` is. Adds a problem
/// if no model or several have this name.
/// @param owner the object that has the field; empty for options
std::string full_gpu_model(Problems& problems, const Cluster& cluster, const std::string& name,
                           const std::string& owner = {});

}  // namespace gpusched::consolidation::detail
