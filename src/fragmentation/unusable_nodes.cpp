// SPDX-License-Identifier: Apache-2.0
// Lists the nodes with GPUs that a shape cannot use.
#include <gpusched/config.hpp>
#include <gpusched/fragmentation/detail/node_groups.hpp>
#include <gpusched/fragmentation/unusable_nodes.hpp>

#include <algorithm>
#include <span>

namespace gpusched::fragmentation {

GPUSCHED_EXPORT std::vector<UnusableNode> unusable_nodes(const Cluster& cluster, const Shape& shape,
                                                         const ReportOptions& options) {
    validate(std::span(&shape, 1), options);
    std::vector<UnusableNode> found;
    for (const auto node : cluster.nodes()) {
        if (!detail::counts(cluster.inventory().nodes, node, options.include_cordoned,
                            options.max_gpus_per_node))
            continue;
        const auto idle = detail::idle_on(cluster, node, options.accounting);
        const auto [cause, milli] = unusable(shape, idle.gpu_milli, idle.cpu_milli);
        if (milli > 0) found.push_back({node, cause, milli});
    }
    std::stable_sort(found.begin(), found.end(),
                     [](const UnusableNode& a, const UnusableNode& b) { return a.milli > b.milli; });
    return found;
}

}  // namespace gpusched::fragmentation
