// SPDX-License-Identifier: Apache-2.0
// Gang: the pods of an allocation in classes, their network requirements, and the steps that all policies
// share.
#pragma once

#include "allocation/exact_packing.hpp"

#include <gpusched/allocation/allocate.hpp>
#include <gpusched/core/budget.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace gpusched::allocation::detail {

/// Equal pods of one group.
struct PodClass {
    TaskId sample = none<TaskId>;
    std::uint32_t group = 0;
    std::vector<std::uint32_t> pods{};  // positions in the gang
    /// The pods have group constraints, so their number on a domain is counted by placing them.
    bool by_trial = false;
    /// The first pod restricts the nodes of the others within a domain, so trials may count fewer pods than
    /// could fit.
    bool follows_first = false;
};

/// A deeper level has a larger depth; nodes are deepest.
inline int depth_of(Level level) noexcept { return level == node_level ? INT32_MAX : level; }

/// The number of pods of a class that fit, per node and per domain of the level at which the gang is spread.
struct PodCapacity {
    std::vector<std::int32_t> node{};
    std::vector<std::int64_t> domain{};
};

class Gang {
  public:
    /// @param budget ends searches early; nullptr = no limit. The caller applies `options.time_limit` to it
    /// @throws InvalidInput as `allocate` says
    Gang(Cluster& cluster, std::span<const TaskId> pods, const AllocateOptions& options, Budget* budget);

    [[nodiscard]] Allocation place() const;
    /// Checks the caller's limits now.
    [[nodiscard]] bool out_of_time() const { return budget != nullptr && budget->exhausted(); }
    /// True 20 ms after a limit was reached, which is time for a simple rule to place the pods.
    [[nodiscard]] bool out_of_grace() const {
        if (!out_of_time()) return false;
        if (!ended_at_) ended_at_ = budget->elapsed_s();
        return budget->elapsed_s() > *ended_at_ + 0.02;
    }
    /// True if an earlier check ended the search. Does not look at the clock.
    [[nodiscard]] bool was_cut() const {
        return budget != nullptr && budget->reason() != StopReason::completed;
    }

    Cluster& cluster;
    const Inventory& inv;
    std::span<const TaskId> pods;
    const AllocateOptions& options;
    Budget* budget;
    std::vector<PodClass> classes{};
    Level level = node_level;               // the entropy is measured at this level
    std::optional<Level> required_level{};  // the deepest level that must be one domain
    bool required_by_affinity = false;
    std::optional<Level> required_network_level{};  // the same without affinity groups
    std::vector<Level> preferred{};                 // levels that break ties, in order
    Level count_level =
        node_level;  // pods are counted at this level: the deeper of `level` and `required_level`
    std::size_t group_count = 0;
    std::vector<std::uint8_t> closed{};  // by domain: takes no pods; empty = none is closed
    bool explains = true;                // whether to give a reason if it places nothing

    [[nodiscard]] std::size_t domains() const { return inv.domain_count(count_level); }
    [[nodiscard]] std::size_t domain(NodeId node) const { return index(inv.domain(count_level, node)); }
    /// Free thousandths of a GPU on schedulable nodes, per domain. Includes lent GPUs if some pod may borrow.
    [[nodiscard]] std::vector<std::int64_t> gpus_per_domain() const;
    /// Thousandths of a GPU of one pod.
    [[nodiscard]] std::int64_t weight(const PodClass& pods_alike) const;

    /// Counts the pods of the class, from its `next`-th on, that nodes and domains can hold.
    [[nodiscard]] PodCapacity rooms(const PodClass& pods_alike, std::size_t next = 0) const;
    /// Returns the most pods of a class that the nodes can hold without its group constraints.
    [[nodiscard]] std::int64_t room_without_groups(const PodClass& pods_alike,
                                                   std::span<const NodeId> nodes) const;
    /// True if a group ties the pods to each other. Does not count a domain that all of them share: the
    /// region covers it.
    [[nodiscard]] bool is_tied(const PodClass& pods_alike) const;
    /// Returns a lower bound of the entropy of every spread of the gang: the least entropy of its GPUs alone,
    /// ignoring how pods divide them.
    /// @param most [class][domain]: pods that a domain holds at most
    /// @param gpus [domain]: free, in thousandths
    [[nodiscard]] double bound(std::span<const std::vector<std::int64_t>> most,
                               std::span<const std::int64_t> gpus) const;
    /// Puts the pod on the node if it fits.
    bool try_put(TaskId pod, NodeId node) const;
    /// Places `count` of the class's pods from its `next`-th on into nodes of one domain, as many as fit.
    /// Returns how many.
    std::int64_t fill(const PodClass& pods_alike, std::size_t next, std::int64_t count,
                      std::span<const NodeId> nodes, std::span<const std::int32_t> room) const;
    /// Returns for each domain its group: its domain at a level above.
    [[nodiscard]] std::vector<std::uint32_t> groups_at(Level above) const;
    /// Returns the pods of every class, for the exact search.
    [[nodiscard]] std::vector<PodShape> shapes() const;
    /// Returns the present placement.
    [[nodiscard]] std::vector<Placement> placements() const;
    /// Returns the parts of the present placement per used domain of a level, ascending.
    [[nodiscard]] std::vector<DomainShare> shares_at(Level l) const;
    /// Returns the entropy of the present placement, in nats: of GPUs, or of pods if no pod has any.
    [[nodiscard]] double entropy_at(Level l) const;
    /// Fills the result from the present placement.
    void describe(Allocation& result) const;
    /// Explains why the cluster as it is cannot hold the pods of a class from its `next`-th on.
    void explain(const PodClass& pods_alike, std::size_t next, Allocation& result) const;

    /// Returns the first kind of group constraint (network level, limits, affinity) without which all pods
    /// would fit. `none` = no kind alone, or a search hit its limit. Call only if the gang does not fit.
    [[nodiscard]] Obstacle binding_groups() const;
    /// Decides by the exact search whether all pods fit. Call it in a cluster without the gang's pods.
    /// @param ignored group constraints of this kind do not count; `none`: all do
    [[nodiscard]] Packed packs(Obstacle ignored, std::int64_t steps = packing_steps) const;
    /// Returns whether the pods have such a constraint and fit without it, within a limit of steps.
    [[nodiscard]] bool fits_without(Obstacle kind) const;
    /// Describes that constraint in words, for several classes. False if there is none.
    bool explain_groups(Allocation& result) const;
    /// Adds to the reason that the search ended early, and why.
    void say_unproven(Allocation& result) const;

  private:
    void make_classes();
    void read_levels();
    void place_uniform(Allocation& result) const;
    void explain_room(const PodClass& pods_alike, std::size_t next, Allocation& result) const;
    [[nodiscard]] std::vector<std::vector<std::uint32_t>> preferred_groups(AllocatePolicy policy) const;
    [[nodiscard]] std::optional<std::vector<std::int64_t>>
    spread(std::span<const std::int64_t> room, std::int64_t count, AllocatePolicy policy) const;
    bool put_counts(const std::vector<std::int64_t>& counts, std::span<const std::int32_t> node_room,
                    std::vector<std::int64_t>& room) const;
    mutable std::optional<double> ended_at_{};
};

/// Places a gang of several classes. Defined in gang_groups.cpp.
void place_mixed(const Gang& gang, Allocation& result);

}  // namespace gpusched::allocation::detail
