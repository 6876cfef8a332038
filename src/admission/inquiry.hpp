// SPDX-License-Identifier: Apache-2.0
// Inquiry: one call of `why`. Asks each constraint about each node, finds the cause, and computes remedies.
#pragma once

#include "allocation/gang.hpp"
#include "allocation/tally.hpp"

#include <gpusched/admission/admit.hpp>
#include <gpusched/admission/why.hpp>
#include <gpusched/allocation/refusals.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpusched::admission::detail {

using allocation::Refusals;
using allocation::detail::Gang;
using allocation::detail::Packed;
using allocation::detail::Tally;

/// A number such as 1,482.
[[nodiscard]] std::string thousands(std::int64_t number);
/// A number with its noun, such as `2 nodes`.
[[nodiscard]] std::string counted(std::int64_t number, const std::string& noun);
/// Thousandths as a number of GPUs.
[[nodiscard]] std::string gpus_text(std::int64_t milli);
/// The first of these names, and the number of the others.
[[nodiscard]] std::string listed(const std::vector<std::string>& names);

/// Equal pods.
struct Kind {
    std::vector<TaskId> pods{};
    [[nodiscard]] TaskId sample() const { return pods.front(); }
};

/// Places pods kind by kind on the nodes, the fullest nodes first, until no other pod fits.
/// @return the pods that found no place
[[nodiscard]] std::vector<TaskId> place_some(Cluster& work, std::span<const Kind> kinds,
                                             std::vector<NodeId> nodes);

/// One call of `why`.
class Inquiry {
  public:
    Inquiry(const Cluster& cluster, const WhyOptions& options, const Context& context);
    Why answer(std::string_view name);

  private:
    // The pods
    /// Finds the pods that the answer is about, and what they wait for if not for room.
    void find_pods(std::string_view name);
    /// The tasks have a node already.
    void say_bound(std::span<const TaskId> tasks);
    void make_kinds();
    /// The gang of a single task that fits alone but cannot start alone; empty if it can.
    [[nodiscard]] std::vector<TaskId> gang_of(TaskId pod) const;
    [[nodiscard]] std::int64_t running_members(JobId job) const;
    /// Returns a clause if the pods that find a place are enough for their gang to start.
    [[nodiscard]] std::string enough_to_start() const;
    void ask_as_it_is();
    /// Do all pods find a place without disturbing other tasks?
    [[nodiscard]] bool fits(const Cluster& cluster, std::span<const TaskId> pods);
    [[nodiscard]] std::vector<Placement> placement(const Cluster& cluster, std::span<const TaskId> pods);
    /// The level of which the pods must share a domain because each must be near the others, if the cluster has none
    /// of the group.
    [[nodiscard]] std::optional<Level> near_level(const Cluster& cluster) const;
    /// Places as many pods as it finds places for, within one domain of the level that they must share.
    /// @return the pods that found none
    std::vector<TaskId> place_best(Cluster& work);

    // Impossible
    /// Opens all nodes, and removes all tasks that may leave.
    [[nodiscard]] Cluster emptied() const;
    [[nodiscard]] bool leaves(TaskId task) const;
    /// Counts whether even the best domain of every level that pods must share is too small for them.
    [[nodiscard]] bool lacks_room(const Cluster& pool);
    /// Decides whether the pods fit on these nodes of the pool.
    [[nodiscard]] Packed holds(Cluster& pool);
    /// The number of pods that find no place in the best domain.
    std::size_t place_best_of(Cluster& pool);
    /// Tries every order and every node for a few pods.
    [[nodiscard]] Packed try_all(Cluster& pool, const std::vector<TaskId>& pods, std::int64_t& steps);
    /// The sets of GPUs and devices of a node that matter to other pods.
    /// @param any one set suffices
    [[nodiscard]] std::vector<GpuMask> gpu_choices(const Cluster& pool, TaskId pod, NodeId node, bool any,
                                                   std::int64_t& steps) const;
    [[nodiscard]] std::optional<bool> is_impossible();
    /// @param running tasks that run and may leave; otherwise one pending task of each kind
    [[nodiscard]] std::vector<TaskId> possible_neighbours(bool running) const;
    /// Tries all neighbours in their places, and for a single pod all except those on its node.
    [[nodiscard]] bool holds_next_to(Cluster& pool, std::span<const TaskId> stay);
    bool say_impossible();
    /// No node passes the constraints that never change.
    void say_permanent(const Tally& tally);
    /// Adds that some of the pods find a place all the same.
    void say_places();

    // The cause
    /// Each pod fits somewhere, and all fit without the level, but not in one domain.
    bool say_topology();
    void say_constraint();
    /// The pods like that of the tally for which the node had room without the constraints that refuse it, if all other
    /// tasks left; at most `count`.
    [[nodiscard]] std::int64_t room_without(const Tally& tally, NodeId node, std::int64_t count);
    using Rows = std::vector<std::uint32_t>;
    /// Returns the fewest constraints without which the nodes could hold `count` pods like that of the tally, by
    /// counting, if all other tasks left. Of equally few, those that leave most nodes. Empty if there are none.
    [[nodiscard]] Rows fewest_that_help(const Tally& tally, std::int64_t count);
    void say_rows(const Tally& tally, const Rows& rows);
    /// What it costs to remove a constraint that alone refuses nodes.
    [[nodiscard]] std::int64_t cost_to_remove(const Tally& tally, std::size_t row);
    void say_row(const Tally& tally, std::size_t row);
    void say_gpus(const Tally& tally, std::size_t row);

    // Remedies
    /// @param changed the cluster after the change, without the pods
    /// @param places of the pods in it
    void add_remedy(RemedyKind kind, std::optional<std::int64_t> cost, std::string text,
                    const Cluster& changed, std::span<const Placement> places);
    /// Names the jobs with pending pods that come before these pods in the queue and fit on their nodes.
    [[nodiscard]] std::string earlier_in_queue(const Cluster& changed, std::span<const Placement> places);
    [[nodiscard]] std::vector<Placement> ask_again(const Cluster& changed);
    /// Removes the items, one after another, without which `helps` still holds.
    template <class Item, class Helps>
    static void reduce(std::vector<Item>& items, Helps&& helps) {
        for (std::size_t i = items.size(); i-- > 0 && items.size() > 1;) {
            auto fewer = items;
            fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
            if (helps(fewer)) items = std::move(fewer);
        }
    }
    [[nodiscard]] static bool uses(std::span<const Placement> pods, NodeId node) {
        return std::any_of(pods.begin(), pods.end(), [&](const Placement& p) { return p.node == node; });
    }
    void ask_others();
    void ask_to_wait();
    void ask_to_uncordon();
    /// The name of a closed node, with the reason in brackets if the cluster has it.
    [[nodiscard]] std::string with_reason(NodeId node) const;
    void ask_admit();
    void add_admission(RemedyKind kind, const Admission& made);
    void ask_for_nodes();
    [[nodiscard]] Cluster with_nodes(NodeId like, std::int64_t count) const;

    const Cluster& cluster_;
    const Inventory& inv_;
    const std::string task_{words_of(inv_).task};  // as messages call it
    const WhyOptions& options_;
    const Context& context_;
    Budget budget_;
    const allocation::AllocateOptions as_it_is_{};
    std::vector<NodeId> nodes_;  // by name
    std::vector<Kind> kinds_;    // of `why_.pods`, the largest first
    std::map<TaskId, std::size_t> kind_of_;
    Why why_;
    std::optional<Cluster> work_;      // with as many of the pods as find a place
    std::vector<TaskId> unplaced_;     // the others
    std::vector<NodeId> best_nodes_;   // where they were placed
    std::optional<Level> level_;       // the pods must share a domain of it
    std::optional<Level> small_;       // of this level no domain is large enough
    std::optional<Cluster> emptied_;   // the pool without tasks that may leave
    std::optional<Cluster> repaired_;  // the same, with nodes that have no failed GPUs and reach the volumes
    // Limits of the search whether it is impossible, about one per pod and node that is asked: in all, so that it
    // ends within a second or two, and for one call of `try_all`.
    static constexpr std::int64_t most_steps = 4'000'000, most_tries = 400'000;
    std::int64_t steps_ = most_steps;
    std::string reason_;       // of `allocate`
    std::int64_t one_of_ = 0;  // the answer is for one of so many pods; 0 = for all
};

}  // namespace gpusched::admission::detail
