// SPDX-License-Identifier: Apache-2.0
// allocate_many: several jobs over switches at once.
#pragma once

#include <gpusched/allocation/allocate.hpp>
#include <gpusched/core/budget.hpp>
#include <gpusched/core/context.hpp>
#include <gpusched/core/fields.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

namespace gpusched::allocation {

/// One of several jobs.
struct GangRequest {
    std::vector<TaskId> pods{};
    AllocateOptions options{};
};

/// How several jobs share the switches.
enum class JointPolicy : std::uint8_t {
    size_sorted,  ///< the paper's practice: one after the other, the most GPUs first
    joint,        ///< ours: the same, then a local search
};
constexpr auto enum_names(JointPolicy) {
    return name_table<JointPolicy>({
        {JointPolicy::size_sorted, "size_sorted"},
        {JointPolicy::joint, "joint"},
    });
}

struct JointOptions {
    /// `size_sorted`: one job after the other, the most GPUs first, as the paper does; `joint`: then a local search.
    JointPolicy policy = JointPolicy::joint;
    std::uint64_t seed = 0;  ///< where random choices start
    /// Trials of the local search, >= 0.
    std::int64_t iterations = 3000;
    /// Most nodes that its trials look at together, >= 0: an end that does not depend on the machine's speed.
    std::int64_t node_visits = 30'000'000;
    /// Seconds, >= 0. A guard: the best found until then is returned. The result then depends on the machine.
    std::optional<double> time_limit{};
};
template <class F>
constexpr void visit_fields(std::type_identity<JointOptions>, F&& field) {
    field("policy", &JointOptions::policy);
    field("seed", &JointOptions::seed);
    field("iterations", &JointOptions::iterations, at_least(0));
    field("node_visits", &JointOptions::node_visits, at_least(0));
    field("time_limit", &JointOptions::time_limit, at_least(0));
}

struct JointAllocations {
    std::vector<Allocation> jobs{};  ///< in the order given; those that found no place say why
    /// Indices of the placed jobs. In this order each is feasible while those before it stand: a job may want another one near.
    std::vector<std::size_t> order{};
    std::int64_t placed = 0;
    double entropy = 0;        ///< of the placed jobs, each weighed with its part of all jobs' GPUs; nats
    double cross_traffic = 0;  ///< of the placed jobs
    /// As many jobs are placed as have a place alone, each with the least entropy that it would have alone.
    bool proven = false;
    std::int64_t trials = 0;
    StopReason stop_reason = StopReason::completed;
};

/// Places the most jobs it can, each whole, then with the least traffic across domains, then with the least entropy weighed
/// by GPUs.
///
/// The ASI paper (section 4.1) leaves several jobs open and sorts them by size. `joint` starts there, so it is never worse,
/// and improves by removing a job that is spread or left out together with some that are in its way, and placing them again in
/// another order, some with domains closed to them so that others keep whole ones. Every job is placed by `allocate` on
/// what the others leave.
///
/// @param jobs every pod in one job only
/// @return see JointAllocations; the cluster is not changed
/// @throws InvalidInput as `allocate`, for pods in two jobs, a job with a time limit of its own, and options out of range
/// @note same input, options and seed give the same result, unless a time limit or a cancellation strikes
/// O(jobs) calls of `allocate`, then at most `node_visits` nodes.
[[nodiscard]] JointAllocations allocate_many(const Cluster& cluster, std::span<const GangRequest> jobs,
                                             const JointOptions& options = {}, const Context& context = {});

/// Its placements, in an order in which they are feasible one after the other.
[[nodiscard]] Plan to_plan(const JointAllocations& allocations);

}  // namespace gpusched::allocation
