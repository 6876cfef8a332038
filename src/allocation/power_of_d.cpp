// SPDX-License-Identifier: Apache-2.0
// Power of d choices: the checks of its options and the default load.
#include <gpusched/allocation/power_of_d.hpp>
#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>

#include <algorithm>
#include <string>

namespace gpusched::allocation {

GPUSCHED_EXPORT std::int32_t AllocatedPart::operator()(const Cluster& cluster, NodeId node) const noexcept {
    const auto part = [](std::int64_t free, std::int64_t capacity) {
        return capacity == 0 ? 0 : static_cast<std::int32_t>(1000 * (capacity - free) / capacity);
    };
    const auto gpus = std::int64_t{whole_gpu_milli} * gpu_count(cluster.healthy_gpus(node));
    return std::max(part(cluster.cpu_free_milli(node), cluster.inventory().nodes.cpu_milli[index(node)]),
                    part(cluster.gpu_free_total_milli(node), gpus));
}

GPUSCHED_EXPORT void detail::validate(const PowerOfDOptions& options) {
    Problems problems;
    check_range(problems, "choices", options.choices, 1, 1000);
    check_at_least(problems, "refresh_every", options.refresh_every, 1);
    problems.throw_if_any();
}

}  // namespace gpusched::allocation
