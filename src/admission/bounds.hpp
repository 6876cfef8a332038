// SPDX-License-Identifier: Apache-2.0
// NodeBounds and PodBounds: lower bounds on the cost of displacing tasks, for a pod on a node and for all
// pods.
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

/// The properties of a task that affect its bounds.
using RequestKey = std::tuple<std::uint32_t, std::uint32_t, int, int, std::int64_t, std::int64_t, bool>;
[[nodiscard]] RequestKey request_key(const Cluster& cluster, TaskId task);

/// The nodes for one request in ascending order of estimated cost. Sorted lazily, up to the highest index in
/// use.
class Ranking {
  public:
    struct Entry {
        std::int64_t bound;     ///< lower bound on the cost of displacing enough tasks on the node
        std::int64_t estimate;  ///< the bound plus estimated costs of places for displaced tasks
        std::int32_t idle;      ///< idle GPUs on the node; breaks ties, most first
        NodeId node;
        friend bool operator<(const Entry& a, const Entry& b) noexcept {
            return std::tie(a.estimate, a.bound, b.idle, a.node) <
                   std::tie(b.estimate, b.bound, a.idle, b.node);
        }
    };
    explicit Ranking(std::vector<Entry> entries);
    [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }
    [[nodiscard]] const Entry& operator[](std::size_t i);
    /// The least bound of entry `i` and all later entries.
    [[nodiscard]] std::int64_t least_from(std::size_t i);
    /// The least bound of all nodes except `node`; `never` if there is no other.
    [[nodiscard]] std::int64_t least_without(NodeId node) const noexcept;
    [[nodiscard]] std::span<const Entry> unsorted() const noexcept { return entries_; }

  private:
    std::vector<Entry> entries_;
    std::vector<std::int64_t> least_from_;  // for the sorted entries
    Entry first_, second_;                  // the two least by bound
};

/// Lower bounds from the snapshot. For GPUs they are exact: a knapsack over the tasks of a node and over its
/// shared GPUs. If only other resources are missing, the bound is the cheapest task that may leave.
class NodeBounds {
  public:
    /// @param needed_milli size of the pods in thousandths of a GPU; the part beyond free capacity must be
    ///     evicted for good
    NodeBounds(const Cluster& cluster, const PriceTable& prices, std::int64_t needed_milli);

    /// Ranks all schedulable nodes on which the task may run (model, labels, taints) and enough tasks may
    /// leave.
    [[nodiscard]] Ranking& ranking(const Cluster& snapshot, TaskId task);

    /// Lower bound on the cost of a place for the task on another node.
    [[nodiscard]] std::int64_t elsewhere(const Cluster& snapshot, TaskId task) {
        return ranking(snapshot, task).least_without(snapshot.node_of(task));
    }
    /// Estimated cost of a place for a displaced task, in addition to its price: tasks that leave there and,
    /// if GPUs are scarce, the loss of as many GPUs elsewhere.
    [[nodiscard]] std::int64_t place_estimate(const Cluster& snapshot, TaskId task) const noexcept;
    /// The least price of the task, including that estimate.
    [[nodiscard]] std::int64_t estimate(const Cluster& snapshot, TaskId task) const noexcept;
    /// A lower bound not less than the one in the ranking: for each displaced task with at least `gpus` GPUs,
    /// other tasks must leave their node. Valid if no node with the pod on it has space for a task of that
    /// size.
    [[nodiscard]] std::int64_t bound_with_places(const Cluster& snapshot, TaskId task, NodeId node,
                                                 int gpus) const;
    /// The amount that `bound_with_places` adds for each displaced task with this number of GPUs.
    [[nodiscard]] std::int64_t place_of_size(int gpus) const noexcept;
    /// Returns whether a task with this number of whole GPUs may leave its node.
    [[nodiscard]] bool has_size(int gpus) const noexcept {
        return static_cast<std::size_t>(gpus) < width_ && has_size_[gpus] != 0;
    }

    /// Lower bound on the cost in addition to `least` prices if `gpu_milli` thousandths of a GPU are evicted
    /// for good.
    [[nodiscard]] std::int64_t loss_of_at_least(std::int64_t gpu_milli) const noexcept;
    /// Free capacity on schedulable nodes in thousandths of a GPU, including lent GPUs.
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

    const PriceTable& prices_;

    std::size_t width_ = 1;               // entries per node of `to_free_`
    std::vector<std::int64_t> to_free_;   // [node][GPUs]: least cost of freeing so many GPUs
    std::vector<std::int64_t> cheapest_;  // by node: price of the cheapest task that may leave
    std::vector<std::int64_t> estimates_, cheapest_estimates_;  // the same tables by estimate
    // By GPUs: least cost of a place for a task with so many whole GPUs, and estimated cost if several are
    // needed.
    std::vector<std::int64_t> place_of_size_, usual_place_of_size_;
    struct Loss {
        std::int64_t gpu_milli, extra;
    };
    std::vector<std::uint8_t> has_size_;
    std::vector<Loss> of_tasks_;
    std::vector<Loss> losses_;  // prefix sums, cheapest per GPU first
    Loss last_loss_{1, 0};      // the costliest task that must be evicted for good
    std::int64_t free_milli_ = 0;
    std::map<RequestKey, Ranking> rankings_;
};

/// A lower bound on the cost of placing all pods, from the bounds of nodes. For equal pods that need one node
/// each, it also has bounds for fewer pods.
class PodBounds {
  public:
    /// @param needed_milli thousandths of a GPU that must be evicted for good
    PodBounds(const Cluster& snapshot, std::span<const TaskId> pods, NodeBounds& bounds,
              std::int64_t needed_milli)
        : snapshot_(snapshot), inv_(snapshot.inventory()), pods_(pods), bounds_(bounds),
          needed_milli_(needed_milli) {}

    /// The bound for all pods on these nodes (ascending; empty = all nodes); `never` if they do not fit. The
    /// functions below refer to the last region.
    [[nodiscard]] std::int64_t of_region(std::span<const NodeId> region);
    /// Returns whether there are bounds for fewer pods: each pod needs a node of its own.
    [[nodiscard]] bool known() const noexcept { return !cheapest_.empty(); }
    /// Lower bound for this number of pods.
    [[nodiscard]] std::int64_t cheapest(std::int64_t pods) const { return cheapest_[pods]; }
    /// Lower bound for one pod on the node.
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
