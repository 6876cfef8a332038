// SPDX-License-Identifier: Apache-2.0
// allocate(): places a gang of pods over switches, all of them or none.
#pragma once

#include <gpusched/core/budget.hpp>
#include <gpusched/core/context.hpp>
#include <gpusched/core/fields.hpp>
#include <gpusched/model/cluster.hpp>
#include <gpusched/model/feasibility.hpp>
#include <gpusched/model/plan.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace gpusched::allocation {

/// The rule that spreads pods over switches; see switch_counts.hpp.
enum class AllocatePolicy : std::uint8_t {
    entropy,  ///< the paper's Algorithm 2, as written
    exact,    ///< least entropy
};

/// Options of `allocate`.
struct AllocateOptions {
    /// How pods of one shape are spread.
    AllocatePolicy policy = AllocatePolicy::exact;
    /// The level at which the entropy is measured, -1 (nodes) to the deepest level of the network. Absent =
    /// the level of the pods' own `network_affinity`, else the deepest level at which the position of some
    /// node is known.
    std::optional<Level> level{};
    /// `required`: one domain of `level`, or not placed. `preferred`: least entropy. Absent = the mode of the
    /// pods' `network_affinity` at `level`, else preferred. A level that the pods themselves require binds in
    /// any case.
    std::optional<NetworkMode> mode{};
    /// Affinities at other levels. `required`: one domain there as well. `preferred`, at levels above `level`
    /// only: breaks ties of least entropy, in the order of the list; Algorithm 2 ignores them.
    std::vector<NetworkAffinity> further{};
    /// The group of each pod, 0 to groups - 1, one entry per pod. Only `traffic` distinguishes groups of
    /// identical pods. Empty = identical pods form a group; groups are numbered by their first pods.
    std::vector<std::uint32_t> groups{};
    /// Traffic between groups as [group][group], symmetric, >= 0, in any unit. The diagonal holds the traffic
    /// among the pods of one group. Each entry is spread evenly over the pairs of pods. Traffic that crosses
    /// domains of `level` is minimised before the entropy. Empty = none.
    std::vector<std::vector<double>> traffic{};
    /// Seconds, >= 0. The best result found by then is returned, so the result depends on the machine's
    /// speed.
    std::optional<double> time_limit{};
};
template <class F>
constexpr void visit_fields(std::type_identity<AllocateOptions>, F&& field) {
    field("policy", &AllocateOptions::policy);
    field("level", &AllocateOptions::level, IsLevel{});
    field("mode", &AllocateOptions::mode);
    field("time_limit", &AllocateOptions::time_limit, at_least(0));
}

/// The part of a gang in one domain.
struct DomainShare {
    DomainId domain = none<DomainId>;
    std::int64_t pods = 0;
    std::int64_t gpu_milli = 0;  ///< thousandths of a GPU
    bool operator==(const DomainShare&) const = default;
};

struct Allocation {
    bool placed = false;
    std::vector<Placement> pods{};  ///< in the order given; empty unless placed
    Level level = node_level;
    std::vector<DomainShare> per_domain{};  ///< used domains of `level`, ascending
    double entropy = 0;        ///< of the GPUs per domain (of the pods if they have no GPUs), in nats
    double cross_traffic = 0;  ///< traffic that crosses domains, in the unit of `traffic`
    /// True if the result is known to be the best: the entropy is the least (with traffic: none crosses), or
    /// no placement exists. False if a search over several shapes hit a limit or may have missed a better
    /// spread, or if a search over group constraints across domains may have missed something. For Algorithm
    /// 2, true only if its entropy is the least.
    bool proven = false;
    Obstacle obstacle = Obstacle::none;  ///< the binding constraint if not placed
    std::string reason{};                ///< the same in words, with figures; empty if placed
    /// `completed`, or the caller's limit that ended the search; a placement may then exist even if none was
    /// found.
    StopReason stop_reason = StopReason::completed;
};

/// Chooses a node for every pod of a gang, without moves or evictions: one job over switches (ASI paper,
/// section 4.1).
///
/// A large job that straddles access switches loses bandwidth. So its pods use few switches, as unevenly as
/// possible: the spread has the least GPU entropy.
///
/// - The capacity of a domain is the number of these pods that its nodes can host, counted pod by pod. The
///   count respects idle healthy GPUs, GPU memory, guaranteed locality, cores, memory, models, labels, taints
///   and group constraints.
/// - Pods of one shape are placed by `options.policy`. Ties of least entropy leave the largest block free.
/// - Within a domain, nodes that hold most pods come first; the last pods go to the tightest node. `ByWish`
///   chooses the GPUs.
/// - Pods of several shapes are placed by a search: one domain for all if it finds one, else greedily,
///   improved by moves and exchanges. If that finds no placement, an exact search finds one or proves that
///   there is none, within a limit of 200,000 steps.
/// - The time limit and the context's stop token end searches over several shapes. The result is then the
///   placement of a simple rule, and `stop_reason` is set.
///
/// A required level is never relaxed: if it cannot be met, nothing is placed and the result names the binding
/// constraint. Levels at which pods share an `affinity` group count as required.
///
/// @param pods pending tasks, distinct, at least one
/// @return see Allocation; the cluster is not changed
/// @throws InvalidInput for pods that are placed, unknown or listed twice, and options out of range
/// One shape: O(nodes + switches log switches). Several: O(shapes x nodes) per trial, a few hundred trials.
/// Deterministic, unless a time limit or a cancellation ends the search.
[[nodiscard]] Allocation allocate(const Cluster& cluster, std::span<const TaskId> pods,
                                  const AllocateOptions& options = {}, const Context& context = {});

/// Does the same in the cluster itself, without a copy: the pods run as the result says, or nothing has
/// changed.
///
/// The changes are in the cluster's log, so `rollback` to a checkpoint taken before undoes them.
Allocation place_gang(Cluster& cluster, std::span<const TaskId> pods, const AllocateOptions& options = {},
                      const Context& context = {});

/// Returns the pending tasks of a job, ascending: those that wait for room if they can start without the
/// others, else all. If no job has the name, returns the pending task of that name.
/// @throws InvalidInput for a name that neither a job nor a task has
[[nodiscard]] std::vector<TaskId> pending_pods(const Cluster& cluster, std::string_view job);

/// Returns the placements as a plan.
[[nodiscard]] Plan to_plan(const Allocation& allocation);

}  // namespace gpusched::allocation
