// SPDX-License-Identifier: Apache-2.0
// Computes the GPU entropy of jobs.
#include <gpusched/config.hpp>
#include <gpusched/fragmentation/detail/node_groups.hpp>
#include <gpusched/fragmentation/entropy.hpp>

#include <cmath>
#include <map>

namespace gpusched::fragmentation {

GPUSCHED_EXPORT double entropy(std::span<const std::int64_t> parts) noexcept {
    std::int64_t sum = 0;
    for (const auto part : parts) sum += part;
    double h = 0;
    for (const auto part : parts) {
        if (part == 0 || part == sum) continue;
        const double p = static_cast<double>(part) / static_cast<double>(sum);
        h -= p * std::log(p);
    }
    return h;
}

namespace detail {

using MilliByDomain = std::map<DomainId, std::int64_t>;

static double entropy_of(const MilliByDomain& milli) {
    std::vector<std::int64_t> parts;
    for (const auto& [domain, part] : milli) parts.push_back(part);
    return entropy(parts);
}

}  // namespace detail

GPUSCHED_EXPORT double job_entropy(const Cluster& cluster, JobId job, std::optional<Level> level) {
    const auto& inv = cluster.inventory();
    const auto at = detail::checked_level(inv, level);
    detail::MilliByDomain milli;
    for (const auto task : cluster.tasks())
        if (inv.tasks.job[index(task)] == job && cluster.is_placed(task))
            milli[inv.domain(at, cluster.node_of(task))] += cluster.gpu_milli(task);
    return detail::entropy_of(milli);
}

GPUSCHED_EXPORT std::vector<double> job_entropies(const Cluster& cluster, std::optional<Level> level) {
    const auto& inv = cluster.inventory();
    const auto at = detail::checked_level(inv, level);
    std::vector<detail::MilliByDomain> milli(inv.job_names.size());
    for (const auto task : cluster.tasks())
        if (const auto job = inv.tasks.job[index(task)]; job != none<JobId> && cluster.is_placed(task))
            milli[index(job)][inv.domain(at, cluster.node_of(task))] += cluster.gpu_milli(task);
    std::vector<double> out;
    for (const auto& of_job : milli) out.push_back(detail::entropy_of(of_job));
    return out;
}

}  // namespace gpusched::fragmentation
