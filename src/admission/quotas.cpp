// SPDX-License-Identifier: Apache-2.0
// Checks jobs against the quotas of their tenants.
#include <gpusched/admission/quotas.hpp>
#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/core/text.hpp>

#include <algorithm>
#include <string_view>

namespace gpusched::admission {

namespace detail {

struct QuotaSums {
    std::int64_t gpu_milli = 0, cpu_milli = 0, memory_mib = 0;
    void add(const Cluster& cluster, TaskId task) {
        const auto& tasks = cluster.inventory().tasks;
        gpu_milli += cluster.gpu_milli(task);
        cpu_milli += tasks.cpu_milli[index(task)];
        memory_mib += tasks.memory_mib[index(task)];
    }
};

static bool belongs_to(const Cluster& cluster, TaskId task, std::string_view tenant) {
    const auto& groups = cluster.inventory().terms(task).groups;
    return std::find(groups.begin(), groups.end(), tenant) != groups.end();
}

void check_quotas(Problems& problems, std::span<const TenantQuota> quotas) {
    for (std::size_t q = 0; q < quotas.size(); ++q) {
        const auto owner = "quotas[" + number_text(q) + "]";
        if (quotas[q].tenant.empty()) problems.add(owner + ": tenant: empty; expected the name of a group");
        check_fields(problems, quotas[q], std::string_view(owner));
    }
}

}  // namespace detail

GPUSCHED_EXPORT std::optional<QuotaBreach>
find_quota_breach(const Cluster& cluster, std::span<const TaskId> pods, std::span<const TenantQuota> quotas) {
    Problems problems;
    detail::check_quotas(problems, quotas);
    problems.throw_if_any();
    for (const auto& quota : quotas) {
        const auto quota_is = "the quota of tenant " + quoted(quota.tenant) + " is ";
        detail::QuotaSums in_use, requested;
        for (const auto task : cluster.tasks())
            if (cluster.is_placed(task) && detail::belongs_to(cluster, task, quota.tenant))
                in_use.add(cluster, task);
        for (const auto pod : pods)
            if (detail::belongs_to(cluster, pod, quota.tenant)) requested.add(cluster, pod);
        using detail::QuotaSums;
        const auto beyond = [&](std::optional<std::int64_t> limit, std::int64_t QuotaSums::*of) {
            return limit && requested.*of > 0 && in_use.*of + requested.*of > *limit;
        };
        const auto in_words = [&](const auto& text, std::int64_t limit, std::int64_t has, std::int64_t wants,
                                  const char* unit) {
            return quota_is + text(limit) + unit + ": " + text(has) + " are in use, " + text(wants) +
                   " more are requested";
        };
        if (beyond(quota.gpu_milli, &QuotaSums::gpu_milli))
            return QuotaBreach{Obstacle::gpu, in_words(milli_text, *quota.gpu_milli, in_use.gpu_milli,
                                                       requested.gpu_milli, " GPUs")};
        if (beyond(quota.cpu_milli, &QuotaSums::cpu_milli))
            return QuotaBreach{Obstacle::cpu, in_words(milli_text, *quota.cpu_milli, in_use.cpu_milli,
                                                       requested.cpu_milli, " cores")};
        if (beyond(quota.memory_mib, &QuotaSums::memory_mib))
            return QuotaBreach{Obstacle::memory, in_words(mib_text, *quota.memory_mib, in_use.memory_mib,
                                                          requested.memory_mib, " of memory")};
        if (!quota.cpu_milli_per_gpu) continue;
        for (const auto pod : pods) {
            const auto gpus = cluster.gpu_milli(pod);
            const auto cores = cluster.inventory().tasks.cpu_milli[index(pod)];
            if (gpus == 0 || !detail::belongs_to(cluster, pod, quota.tenant)) continue;
            if (static_cast<double>(cores) * 1000 >
                static_cast<double>(*quota.cpu_milli_per_gpu) * static_cast<double>(gpus))
                return QuotaBreach{Obstacle::cpu, quota_is + milli_text(*quota.cpu_milli_per_gpu) +
                                                      " cores for each GPU: task " +
                                                      quoted(cluster.name(pod)) + " requests " +
                                                      milli_text(cores) + " for " + milli_text(gpus) +
                                                      " GPUs"};
        }
    }
    return std::nullopt;
}

}  // namespace gpusched::admission
