// SPDX-License-Identifier: Apache-2.0
// Computes the GPU entropy of jobs.
#include <gpusched/config.hpp>
#include <gpusched/fragmentation/detail/node_groups.hpp>
#include <gpusched/fragmentation/entropy.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

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

GPUSCHED_EXPORT double job_entropy(const Cluster& cluster, JobId job, std::optional<Level> level) {
    const auto& inv = cluster.inventory();
    const auto at = detail::checked_level(inv, level);
    std::map<DomainId, std::int64_t> milli;
    for (const auto task : cluster.tasks())
        if (inv.tasks.job[index(task)] == job && cluster.is_placed(task))
            milli[inv.domain(at, cluster.node_of(task))] += cluster.gpu_milli(task);
    std::vector<std::int64_t> parts;
    for (const auto& [domain, part] : milli) parts.push_back(part);
    return entropy(parts);
}

GPUSCHED_EXPORT std::vector<double> job_entropies(const Cluster& cluster, std::optional<Level> level) {
    const auto& inv = cluster.inventory();
    const auto at = detail::checked_level(inv, level);
    struct Part {
        JobId job;
        DomainId domain;
        std::int64_t milli;
    };
    std::vector<Part> all;
    for (const auto task : cluster.tasks())
        if (const auto job = inv.tasks.job[index(task)]; job != none<JobId> && cluster.is_placed(task))
            all.push_back({job, inv.domain(at, cluster.node_of(task)), cluster.gpu_milli(task)});
    std::sort(all.begin(), all.end(), [](const Part& a, const Part& b) {
        return std::pair(a.job, a.domain) < std::pair(b.job, b.domain);
    });
    std::vector<double> out(inv.job_names.size());
    std::vector<std::int64_t> parts;
    for (std::size_t i = 0; i < all.size();) {
        const auto job = all[i].job;
        parts.clear();
        while (i < all.size() && all[i].job == job) {
            const auto domain = all[i].domain;
            parts.push_back(0);
            for (; i < all.size() && all[i].job == job && all[i].domain == domain; ++i)
                parts.back() += all[i].milli;
        }
        out[index(job)] = entropy(parts);
    }
    return out;
}

}  // namespace gpusched::fragmentation
