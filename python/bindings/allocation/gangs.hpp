// Jobs as callers describe them where they are to be allocated.
#pragma once

#include "model/cluster_views.hpp"
#include "support/documents.hpp"
#include "support/keywords.hpp"

#include <gpusched/allocation/allocate.hpp>
#include <gpusched/allocation/job_request.hpp>

#include <string>
#include <vector>

namespace gpusched::python {

/// A job with what its description says about how to allocate it.
struct JobArgument {
    std::string name{};
    allocation::JobRequest request{};  ///< without pods for a job of the cluster
    allocation::AllocateOptions options{};
};

/// A list of {"level", "mode"}.
std::vector<NetworkAffinity> further_levels(py::handle value);
using TrafficMatrix = OptionType<std::vector<std::vector<double>>>;

/// @throws InvalidInput with everything that is wrong; TypeError for what is no job
/// @param source how messages call it
JobArgument job_argument(const py::object& job, const Cluster* cluster = nullptr,
                         const std::string& source = "job");

struct JobsInCluster {
    ClusterPtr cluster{};
    std::vector<allocation::JobPods> jobs{};
};

/// The jobs as pending pods of a cluster that has them.
JobsInCluster in_cluster(const ClusterPtr& cluster, const std::vector<JobArgument>& jobs);

/// The result of one allocation with names, as Python's `Allocation`.
py::object named_allocation(const Cluster& cluster, const std::string& job,
                            const allocation::Allocation& found);

/// Adds what places jobs to gpusched.allocation.

}  // namespace gpusched::python
