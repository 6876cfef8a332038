// SPDX-License-Identifier: Apache-2.0
// Quotas: limits on the resources of a tenant, and on the cores per GPU of its pods.
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
    std::string tenant{};                             ///< a group; the tenant's tasks list it in `groups`
    std::optional<std::int64_t> gpu_milli{};          ///< GPUs of all its tasks together, in thousandths
    std::optional<std::int64_t> cpu_milli{};          ///< cores of all its tasks together, in thousandths
    std::optional<std::int64_t> memory_mib{};         ///< memory of all its tasks together
    std::optional<std::int64_t> cpu_milli_per_gpu{};  ///< most thousandths of a core per GPU of a pod
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

/// A quota that a job exceeds.
struct QuotaBreach {
    Obstacle obstacle = Obstacle::none;  ///< `gpu`, `cpu` or `memory`
    /// In words, such as "the quota of tenant 'ads' is 8 GPUs: 6 are in use, 4 more are requested".
    std::string reason{};
};

/// Returns the first quota that `pods` would exceed, in the order of the quotas and their fields; absent if
/// all hold.
///
/// Running tasks use the resources that they request, including resources that Standby tasks lend. Pending
/// tasks other than `pods` use none. A tenant beyond its quota may still use resources of other kinds. If a
/// tenant has two quotas, both hold.
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
