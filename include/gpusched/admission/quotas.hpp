// SPDX-License-Identifier: Apache-2.0
// Quotas: what the tasks of a tenant may hold together, and how many cores a pod may ask for beside each GPU.
#pragma once

#include <gpusched/core/checks.hpp>
#include <gpusched/core/fields.hpp>
#include <gpusched/model/cluster.hpp>
#include <gpusched/model/feasibility.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>

namespace gpusched::admission {

/// The quota of one tenant. Absent fields limit nothing.
///
/// Source: ASI, section 2: "a tenant cannot request more resources than its assigned quota".
struct TenantQuota {
    std::string tenant{};                      ///< a group: its tasks are those that list it in `groups`
    std::optional<std::int64_t> gpu_milli{};   ///< thousandths of a GPU, of all tasks together
    std::optional<std::int64_t> cpu_milli{};   ///< thousandths of a core, likewise
    std::optional<std::int64_t> memory_mib{};  ///< likewise
    std::optional<std::int64_t> cpu_milli_per_gpu{};  ///< of each pod that asks for GPUs, for each of them
    bool operator==(const TenantQuota&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<TenantQuota>, F&& field) {
    field("tenant", &TenantQuota::tenant, Required{});
    field("gpu_milli", &TenantQuota::gpu_milli, any_amount);
    field("cpu_milli", &TenantQuota::cpu_milli, any_amount);
    field("memory_mib", &TenantQuota::memory_mib, any_amount);
    field("cpu_milli_per_gpu", &TenantQuota::cpu_milli_per_gpu, any_amount);
}

/// What a quota refuses.
struct QuotaBreach {
    Obstacle obstacle = Obstacle::none;  ///< `gpu`, `cpu` or `memory`
    std::string
        reason{};  ///< the same in words, such as "the quota of tenant 'ads' is 8 GPUs: 6 held, 4 more asked for"
};

/// The first quota, in their order and then in that of their fields, that `pods` would go beyond; nothing where all hold.
///
/// Running tasks hold what they ask for, and so do Standby tasks what they lend; other pending tasks than `pods` hold nothing. A
/// tenant above its quota is refused only more of the resource in question. Two quotas for one tenant both hold.
/// @param pods pending tasks, each once
/// @throws InvalidInput for a quota without a tenant, and numbers out of range
/// O(tasks x groups of a task x quotas)
[[nodiscard]] std::optional<QuotaBreach>
find_quota_breach(const Cluster& cluster, std::span<const TaskId> pods, std::span<const TenantQuota> quotas);

namespace detail {
/// Adds a problem for each quota without a tenant and each number out of range.
void check_quotas(Problems& problems, std::span<const TenantQuota> quotas);
}  // namespace detail

}  // namespace gpusched::admission
