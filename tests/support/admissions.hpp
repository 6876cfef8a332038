// SPDX-License-Identifier: Apache-2.0
// Clusters, gangs and decisions of admission, each decision checked by the verifier.
#pragma once

#include "support/catch.hpp"
#include "support/plans.hpp"

#include <gpusched/admission/admit.hpp>
#include <gpusched/allocation/job_request.hpp>

namespace testing_support {

/// A task that holds so many GPUs of a node from `first` on.
inline gpusched::TaskSpec& run(gpusched::ClusterSpec& spec, const std::string& name, const std::string& node,
                               int first, int gpus) {
    gpusched::TaskSpec task{.name = name, .gpu_count = gpus};
    task.node = node;
    task.gpus.resize(static_cast<std::size_t>(gpus));
    std::iota(task.gpus.begin(), task.gpus.end(), first);
    spec.tasks.push_back(task);
    return spec.tasks.back();
}

/// The same with ids that are positions in its data.
inline gpusched::allocation::ClusterWithJob as_listed(const gpusched::allocation::ClusterWithJob& with) {
    gpusched::allocation::ClusterWithJob listed;
    listed.cluster = gpusched::Cluster::build(with.cluster.to_spec(), gpusched::IdOrder::as_listed);
    listed.groups = with.groups;
    for (const auto pod : with.pods) listed.pods.push_back(listed.cluster.find_task(with.cluster.name(pod)));
    return listed;
}

/// The cluster with a gang of pods of one size that waits.
inline gpusched::allocation::ClusterWithJob waiting(const gpusched::ClusterSpec& spec, std::int64_t count,
                                                    std::int64_t gpus, std::int64_t priority = 0) {
    gpusched::allocation::PodRequest pods{.count = count};
    pods.pod.gpu_count = gpus;
    pods.pod.priority = priority;
    return as_listed(gpusched::allocation::with_job(gpusched::Cluster::build(spec), {"gang", {pods}}));
}

/// The decision, whose plan the verifier accepts.
inline gpusched::admission::Admission verified(const gpusched::Cluster& cluster,
                                               const std::vector<gpusched::TaskId>& pods,
                                               const gpusched::admission::Options& options = {}) {
    auto made = gpusched::admission::admit(cluster, pods, options);
    testing_support::require_valid(cluster.to_spec(), cluster, made.plan);
    return made;
}
inline gpusched::admission::Admission verified(const gpusched::allocation::ClusterWithJob& with,
                                               const gpusched::admission::Options& options = {}) {
    return verified(with.cluster, with.pods, options);
}

}  // namespace testing_support
