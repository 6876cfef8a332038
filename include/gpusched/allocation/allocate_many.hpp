// SPDX-License-Identifier: Apache-2.0
// Declares allocate_many(), which places several jobs over switches at once.
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
    size_sorted,  ///< the paper's practice: one job after another, the most GPUs first
    joint,        ///< the same, then a local search (not in the paper)
};

struct JointOptions {
    /// `size_sorted` places one job after another, the most GPUs first, as the paper does; `joint` adds a
    /// local search.
    JointPolicy policy = JointPolicy::joint;
    std::uint64_t seed = 0;  ///< seed of the random choices
    /// Trials of the local search, >= 0.
    std::int64_t iterations = 3000;
    /// The most nodes that its trials look at together, >= 0. This limit does not depend on the machine's
    /// speed.
    std::int64_t node_visits = 30'000'000;
    /// Seconds, >= 0. The best result found by then is returned, so the result depends on the machine's
    /// speed.
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
    std::vector<Allocation> jobs{};  ///< in the order given; a job without a placement has a reason
    /// Indices of the placed jobs, in an order in which each is feasible after those before it: a job may
    /// want to be near another one.
    std::vector<std::size_t> order{};
    std::int64_t placed = 0;
    double entropy = 0;  ///< of the placed jobs, in nats; each job is weighted by its share of all jobs' GPUs
    double cross_traffic = 0;  ///< of the placed jobs
    /// True if every job that can be placed alone is placed, each with the least entropy that it would have
    /// alone.
    bool proven = false;
    std::int64_t trials = 0;
    StopReason stop_reason = StopReason::completed;
};

/// Places as many jobs as possible, each whole; then minimises traffic across domains, then the entropy
/// weighted by GPUs.
///
/// The ASI paper (section 4.1) leaves several jobs open and sorts them by size. `joint` starts from that
/// result, so it is never worse. Each trial removes a job that is spread or left out, together with some jobs
/// in its way. It places them again in another order, some with domains closed to them so that others keep
/// whole domains. `allocate` places each job in the capacity that the other jobs leave.
///
/// @param jobs every pod in one job only
/// @return see JointAllocations; the cluster is not changed
/// @throws InvalidInput as `allocate`, for pods in two jobs, a job with a time limit of its own, and options
///     out of range
/// @note same input, options and seed give the same result, unless a time limit or a cancellation
/// ends the search
/// O(jobs) calls of `allocate`, then at most `node_visits` nodes.
[[nodiscard]] JointAllocations allocate_many(const Cluster& cluster, std::span<const GangRequest> jobs,
                                             const JointOptions& options = {}, const Context& context = {});

/// Returns the placements as a plan, in an order in which they are feasible one after another.
[[nodiscard]] Plan to_plan(const JointAllocations& allocations);

}  // namespace gpusched::allocation
