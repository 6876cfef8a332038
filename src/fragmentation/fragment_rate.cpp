// SPDX-License-Identifier: Apache-2.0
// Computes the fragment rate of nodes and clusters.
#include <gpusched/config.hpp>
#include <gpusched/fragmentation/detail/node_groups.hpp>
#include <gpusched/fragmentation/fragment_rate.hpp>
#include <gpusched/fragmentation/incremental.hpp>

namespace gpusched::fragmentation {

GPUSCHED_EXPORT FragmentRateMetric::FragmentRateMetric(const FragmentRateOptions& options)
    : options_(options) {
    require_fields(options);
}

GPUSCHED_EXPORT FragmentRate FragmentRateMetric::state(const Cluster& cluster, NodeId node) const noexcept {
    if (!detail::counts(cluster.inventory().nodes, node, options_.include_cordoned)) return {};
    const int whole = gpu_count(cluster.idle_gpus(node));
    const auto idle = cluster.gpu_free_total_milli(node);
    return {idle, whole >= options_.gpus ? idle - std::int64_t{whole_gpu_milli} * whole : idle};
}

GPUSCHED_EXPORT FragmentRate fragment_rate(const Cluster& cluster, const FragmentRateOptions& options) {
    return evaluate(FragmentRateMetric(options), cluster);
}

}  // namespace gpusched::fragmentation
