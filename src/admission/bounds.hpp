// SPDX-License-Identifier: Apache-2.0
// NodeBounds: for every node, what it costs at least to displace enough there for a task.
#pragma once

#include "admission/prices.hpp"

#include <gpusched/model/cluster.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

namespace gpusched::admission::detail {

/// What a node's bound depends on, of a task.
using RequestKey = std::tuple<std::uint32_t, std::uint32_t, int, int, std::int64_t, std::int64_t, bool>;
[[nodiscard]] RequestKey request_key(const Cluster& cluster, TaskId task);

/// Nodes of one request in ascending order of what displacing enough there will cost by estimate, sorted as far as somebody looked.
class Ranking {
  public:
    struct Entry {
        std::int64_t bound;  ///< what it costs at least to displace enough on the node
        std::int64_t
            estimate;  ///< the same with what the places of displaced tasks may cost; not less than the bound
        std::int32_t idle;  ///< GPUs that are idle there: ties go to the node with most of them
        NodeId node;
        friend bool operator<(const Entry& a, const Entry& b) noexcept {
            return std::tie(a.estimate, a.bound, b.idle, a.node) <
                   std::tie(b.estimate, b.bound, a.idle, b.node);
        }
    };
    explicit Ranking(std::vector<Entry> entries);
    [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }
    [[nodiscard]] const Entry& operator[](std::size_t i);
    /// The least bound of the `i`-th and of all after it.
    [[nodiscard]] std::int64_t least_from(std::size_t i);
    /// The least bound of all nodes but one; `never` = there is no other.
    [[nodiscard]] std::int64_t least_without(NodeId node) const noexcept;
    [[nodiscard]] std::span<const Entry> unsorted() const noexcept { return entries_; }

  private:
    std::vector<Entry> entries_;
    std::vector<std::int64_t> least_from_;  // of those that are sorted
    Entry first_, second_;                  // by bound
};

/// Bounds from the snapshot: the cheapest tasks on a node that free so many GPUs, exact as far as GPUs go (a knapsack over the tasks and
/// over the GPUs that several share), and where only other resources lack the cheapest task that may leave.
class NodeBounds {
  public:
    /// @param needed_milli thousandths of a GPU that must leave for good are those beyond what is free
    NodeBounds(const Cluster& cluster, const Prices& prices, std::int64_t needed_milli);

    /// Of all schedulable nodes where the task may run (model, labels, taints) and enough may leave.
    [[nodiscard]] Ranking& ranking(const Cluster& snapshot, TaskId task);

    /// What it costs at least to displace enough for the task on another node than its own.
    [[nodiscard]] std::int64_t elsewhere(const Cluster& snapshot, TaskId task) {
        return ranking(snapshot, task).least_without(snapshot.node_of(task));
    }
    /// What the place of a displaced task costs by estimate, on top of its price: the tasks that leave there, and where GPUs are scarce the
    /// loss of as many elsewhere.
    [[nodiscard]] std::int64_t place_estimate(const Cluster& snapshot, TaskId task) const noexcept;
    /// The least of the task's prices with that estimate.
    [[nodiscard]] std::int64_t estimate(const Cluster& snapshot, TaskId task) const noexcept;
    /// A bound on what displacing enough for the task on the node costs, not less than its bound in the ranking: displaced tasks of at
    /// least so many GPUs go where, for each of them, others leave. For tasks beside which nobody of that size fits on any node.
    [[nodiscard]] std::int64_t bound_with_places(const Cluster& snapshot, TaskId task, NodeId node,
                                                 int gpus) const;
    /// What `bound_with_places` adds for each displaced task of so many GPUs.
    [[nodiscard]] std::int64_t place_of_size(int gpus) const noexcept;
    /// Some task of so many whole GPUs may leave its node.
    [[nodiscard]] bool has_size(int gpus) const noexcept {
        return static_cast<std::size_t>(gpus) < width_ && has_size_[static_cast<std::size_t>(gpus)] != 0;
    }

    /// What tasks lose at least, on top of their `least` prices, where so many thousandths of a GPU must leave for good.
    [[nodiscard]] std::int64_t loss_of_at_least(std::int64_t gpu_milli) const noexcept;
    /// Thousandths of a GPU that are free on schedulable nodes, lent ones included.
    [[nodiscard]] std::int64_t free_milli() const noexcept { return free_milli_; }

  private:
    void find_places(const Cluster& cluster, std::int64_t needed_milli);
    void find_losses(std::int64_t most);
    template <class PriceOf>
    std::int64_t find_least(const Cluster& cluster, NodeId node, PriceOf&& price_of,
                            std::span<std::int64_t> best) const;
    [[nodiscard]] bool lacks_others(const Cluster& snapshot, TaskId task, NodeId node) const;
    [[nodiscard]] std::int64_t bound(const Cluster& snapshot, TaskId task, NodeId node, int idle,
                                     std::span<const std::int64_t> to_free, std::int64_t cheapest) const;

    const Prices& prices_;

    std::size_t width_ = 1;  // entries per node of `to_free_`
    std::vector<std::int64_t>
        to_free_;  // [node][GPUs]: the least that displacing tasks costs which frees so many
    std::vector<std::int64_t> cheapest_;                        // by node: the cheapest task that may leave
    std::vector<std::int64_t> estimates_, cheapest_estimates_;  // both by estimate
    std::vector<std::int64_t>
        place_of_size_;  // by GPUs: what leaves a node for one of so many whole GPUs, at least
    std::vector<std::int64_t> usual_place_of_size_;  // the same where several places are needed, by estimate
    struct Loss {
        std::int64_t gpu_milli, extra;
    };
    std::vector<std::uint8_t> has_size_;
    std::vector<Loss> of_tasks_;
    std::vector<Loss> losses_;  // running sums, cheapest per GPU first
    Loss dearest_{1, 0};        // the last of those that must be lost
    std::int64_t free_milli_ = 0;
    std::map<RequestKey, Ranking> rankings_;
};

/// A lower bound on the cost of every way to let the pods in, from the bounds of nodes alone. Pods that are alike and need a node each have
/// it node by node as well.
class PodBounds {
  public:
    /// @param needed_milli thousandths of a GPU that must be lost for good
    PodBounds(const Cluster& snapshot, std::span<const TaskId> pods, NodeBounds& bounds,
              std::int64_t needed_milli)
        : snapshot_(snapshot), inv_(snapshot.inventory()), pods_(pods), bounds_(bounds),
          needed_milli_(needed_milli) {}

    /// Of every way with all pods on these nodes (ascending; empty = everywhere); `never` = there is none. What follows is about the
    /// region that was asked for last.
    [[nodiscard]] std::int64_t of_region(std::span<const NodeId> region);
    /// Whether each pod needs a node of its own, so that there are bounds for fewer pods.
    [[nodiscard]] bool known() const noexcept { return !cheapest_.empty(); }
    /// What so many pods cost at least.
    [[nodiscard]] std::int64_t cheapest(std::int64_t pods) const {
        return cheapest_[static_cast<std::size_t>(pods)];
    }
    /// What a pod costs on the node at least.
    [[nodiscard]] std::int64_t at(NodeId node) const { return at_[index(node)]; }

  private:
    bool find(std::span<const std::uint8_t> inside);

    const Cluster& snapshot_;
    const Inventory& inv_;
    std::span<const TaskId> pods_;
    NodeBounds& bounds_;
    std::int64_t needed_milli_;
    std::vector<std::int64_t> cheapest_{};  // by number of pods
    std::vector<std::int64_t> at_{};        // by node; empty like `cheapest_`
};

}  // namespace gpusched::admission::detail
