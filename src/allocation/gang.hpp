// SPDX-License-Identifier: Apache-2.0
// Gang: the pods of an allocation in classes, what is asked of their network, and the steps that all policies share.
#pragma once

#include <gpusched/allocation/allocate_options.hpp>
#include <gpusched/core/budget.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace gpusched::allocation::detail {

/// Pods of one group that ask for the same.
struct PodClass {
    TaskId sample = none<TaskId>;
    std::uint32_t group = 0;
    std::vector<std::uint32_t> pods{};  // positions in the gang
    bool by_trial = false;
    /// Its first pod decides where the others may go within a domain, so trials may find less room than there is.
    bool follows_first = false;
};

/// Deeper is more; nodes are deepest.
inline int depth_of(Level level) noexcept { return level == node_level ? INT32_MAX : level; }

/// The order of constraints in `explain`, and what is counted up to each.
struct RoomStage {
    Obstacle binding = Obstacle::none;
    std::int64_t room = 0;
};

/// What a class finds: pods per node, and per domain of the level at which the gang is spread.
struct Rooms {
    std::vector<std::int32_t> node{};
    std::vector<std::int64_t> domain{};
};

class Gang {
  public:
    /// @param budget ends searches early; nullptr = nothing does. Whoever makes it looks at `options.time_limit`
    /// @throws InvalidInput as `allocate` says
    Gang(Cluster& cluster, std::span<const TaskId> pods, const AllocateOptions& options, Budget* budget);

    [[nodiscard]] Allocation place() const;
    /// The caller's limits.
    [[nodiscard]] bool out_of_time() const { return budget != nullptr && budget->exhausted(); }
    /// The same, but for 20 ms in which a simple rule may still place the pods.
    [[nodiscard]] bool out_of_grace() const {
        if (!out_of_time()) return false;
        if (!ended_at_) ended_at_ = budget->elapsed_s();
        return budget->elapsed_s() > *ended_at_ + 0.02;
    }
    /// Some limit of the caller's has struck, so that parts of the search may be missing.
    [[nodiscard]] bool was_cut() const {
        return budget != nullptr && budget->reason() != StopReason::completed;
    }

    Cluster& cluster;
    const Inventory& inv;
    std::span<const TaskId> pods;
    const AllocateOptions& options;
    Budget* budget;
    std::vector<PodClass> classes{};
    Level level = node_level;       // where the entropy is measured
    std::optional<Level> region{};  // the deepest level that must be one domain
    bool region_is_affinity = false;
    std::optional<Level> network_region{};  // the same without what affinity groups ask for
    std::vector<Level> preferred{};         // levels that break ties, in order
    Level fine = node_level;                // where rooms are counted: the deeper of `level` and `region`
    std::size_t group_count = 0;
    std::vector<std::uint8_t> closed{};  // by domain: takes no pods; empty = all do
    bool explains = true;                // says why when it places nothing

    [[nodiscard]] std::size_t domains() const { return inv.domain_count(fine); }
    [[nodiscard]] std::size_t domain(NodeId node) const { return index(inv.domain(fine, node)); }
    /// Free thousandths of a GPU on schedulable nodes, with what is lent where a pod may borrow.
    [[nodiscard]] std::vector<std::int64_t> gpus_per_domain() const;
    /// Thousandths of a GPU of one pod.
    [[nodiscard]] std::int64_t weight(const PodClass& pods_alike) const;

    /// For its pods from the `next`-th on.
    [[nodiscard]] Rooms rooms(const PodClass& pods_alike, std::size_t next = 0) const;
    /// How many pods of a class the nodes hold at most, whatever its groups say.
    [[nodiscard]] std::int64_t room_without_groups(const PodClass& pods_alike,
                                                   std::span<const NodeId> nodes) const;
    /// A group ties the pods to each other; not by a domain that all of them share, which is that of the region.
    [[nodiscard]] bool is_tied(const PodClass& pods_alike) const;
    /// No spread of the gang has less entropy than its GPUs would have alone, whatever their pods.
    /// @param most [class][domain]: pods that a domain holds at most
    /// @param gpus [domain]: free, in thousandths
    [[nodiscard]] double bound(std::span<const std::vector<std::int64_t>> most,
                               std::span<const std::int64_t> gpus) const;
    /// Puts the pod there if it fits.
    bool try_put(std::size_t pod, NodeId node) const;
    bool try_put_task(TaskId task, NodeId node) const;
    /// Places `count` of the class's pods from its `next`-th on into nodes of one domain, as many as fit.
    std::int64_t fill(const PodClass& pods_alike, std::size_t next, std::int64_t count,
                      std::span<const NodeId> nodes, std::span<const std::int32_t> room) const;
    /// Groups of the domains by a level above them.
    [[nodiscard]] std::vector<std::uint32_t> groups_at(Level above) const;
    /// Of the present placement, in nats: over GPUs, or over pods where no pod has any.
    [[nodiscard]] double entropy_at(Level l) const;
    /// From the present placement.
    void describe(Allocation& result) const;
    /// Why the pods of a class from its `next`-th on find no room in the cluster as it is.
    void explain(const PodClass& pods_alike, std::size_t next, Allocation& result) const;

    /// The kind of group constraint (network level, limits, affinity) without which all pods would fit, the first of these;
    /// `none` = no kind alone, or a search hit its limit. To be asked of a gang that does not fit.
    [[nodiscard]] Obstacle binding_groups() const;
    /// Says that in words, of several classes. False where there is none.
    bool explain_groups(Allocation& result) const;
    /// Adds to the reason that the search ended early, and why.
    void say_unproven(Allocation& result) const;

  private:
    [[nodiscard]] bool fits_without(Obstacle kind) const;
    void make_classes();
    void read_levels();
    void place_alike(Allocation& result) const;
    [[nodiscard]] std::vector<std::vector<std::uint32_t>> preferred_groups(AllocatePolicy policy) const;
    [[nodiscard]] std::optional<std::vector<std::int64_t>>
    spread(std::span<const std::int64_t> room, std::int64_t count, AllocatePolicy policy) const;
    bool put_counts(const std::vector<std::int64_t>& counts, std::span<const std::int32_t> node_room,
                    std::vector<std::int64_t>& room) const;
    mutable std::optional<double> ended_at_{};
};

/// Places a gang of several classes. Defined in gang_groups.cpp.
void place_groups(const Gang& gang, Allocation& result);

}  // namespace gpusched::allocation::detail
