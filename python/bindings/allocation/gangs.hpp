// SPDX-License-Identifier: Apache-2.0
// Jobs to be allocated, as callers describe them.
#pragma once

#include "model/cluster_views.hpp"
#include "support/documents.hpp"
#include "support/keywords.hpp"

#include <gpusched/allocation/allocate.hpp>
#include <gpusched/allocation/job_request.hpp>

namespace gpusched::python {

/// A job, and the options of its allocation from its description.
struct JobArgument {
    std::string name{};
    allocation::JobRequest request{};  ///< without pods if the job is in the cluster
    allocation::AllocateOptions options{};
};

/// Reads a list of {"level", "mode"}.
std::vector<NetworkAffinity> further_levels(py::handle value);
using TrafficMatrix = OptionType<std::vector<std::vector<double>>>;

/// @throws InvalidInput with all problems; TypeError if it is not a job
/// @param source name of the job in messages
JobArgument job_argument(const py::object& job, const Cluster* cluster = nullptr,
                         const std::string& source = "job");

struct JobsInCluster {
    ClusterPtr cluster{};
    std::vector<allocation::JobPods> jobs{};
};

/// The jobs as pending pods of a cluster that contains them.
JobsInCluster in_cluster(const ClusterPtr& cluster, const std::vector<JobArgument>& jobs);

/// Reads a list of names of pending tasks.
/// @param argument its name in messages, which also name the other forms of a job
std::vector<TaskId> pending_pods_argument(const char* argument, const py::object& pods,
                                          const Cluster& cluster);

/// The result of one allocation with names: Python's `Allocation`.
py::object named_allocation(const Cluster& cluster, const std::string& job,
                            const allocation::Allocation& found);

}  // namespace gpusched::python
