// NodeBounds: for every node, what it costs at least to displace enough there for a task.
#pragma once

#include <gpusched/admission/detail/prices.hpp>
#include <gpusched/config.hpp>
#include <gpusched/model/cluster.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

namespace GPUSCHED_NAMESPACE::admission::detail {

/// What a node's bound depends on, of a task.
using RequestKey = std::tuple<std::uint32_t, std::uint32_t, int, int, std::int64_t, std::int64_t, bool>;
[[nodiscard]] RequestKey request_key(const Cluster& cluster, TaskId task);

/// Nodes of one request in ascending order of their bounds, sorted as far as somebody looked.
class Ranking {
  public:
    struct Entry {
        std::int64_t bound;  ///< what it costs at least to displace enough on the node
        std::int32_t idle;   ///< GPUs that are idle there: ties go to the node with most of them
        NodeId node;
        friend bool operator<(const Entry& a, const Entry& b) noexcept {
            return std::tie(a.bound, b.idle, a.node) < std::tie(b.bound, a.idle, b.node);
        }
    };
    explicit Ranking(std::vector<Entry> entries) : entries_(std::move(entries)) {}
    [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }
    [[nodiscard]] const Entry& operator[](std::size_t i);
    [[nodiscard]] std::span<const Entry> unsorted() const noexcept { return entries_; }

  private:
    std::vector<Entry> entries_;
    std::size_t sorted_ = 0;
};

/// Bounds from the snapshot: the cheapest tasks on a node that free so many GPUs, exact as far as GPUs go (a knapsack over the tasks and
/// over the GPUs that several share), and where only other resources lack the cheapest task that may leave.
class NodeBounds {
  public:
    NodeBounds(const Cluster& cluster, const Prices& prices);

    /// Of all schedulable nodes where the task may run (model, labels, taints) and enough may leave.
    [[nodiscard]] Ranking& ranking(const Cluster& snapshot, TaskId task);

    /// To be called once, before `loss_of_at_least` is asked for up to `most`.
    void prepare_losses(std::int64_t most);
    /// What tasks lose at least, on top of their `least` prices, where so many thousandths of a GPU must leave for good.
    [[nodiscard]] std::int64_t loss_of_at_least(std::int64_t gpu_milli) const noexcept;
    /// Thousandths of a GPU that are free on schedulable nodes, lent ones included.
    [[nodiscard]] std::int64_t free_milli() const noexcept { return free_milli_; }

  private:
    [[nodiscard]] std::int64_t bound(const Cluster& snapshot, TaskId task, NodeId node, int idle) const;

    std::size_t width_ = 1;  // entries per node of `to_free_`
    std::vector<std::int64_t>
        to_free_;  // [node][GPUs]: the least that displacing tasks costs which frees so many
    std::vector<std::int64_t> cheapest_;  // by node: the cheapest task that may leave
    struct Loss {
        std::int64_t gpu_milli, extra;
    };
    std::vector<Loss> of_tasks_;  // until `prepare_losses`
    std::vector<Loss> losses_;    // running sums, cheapest per GPU first
    std::int64_t free_milli_ = 0;
    std::map<RequestKey, Ranking> rankings_;
};

}  // namespace GPUSCHED_NAMESPACE::admission::detail

#ifdef GPUSCHED_HEADER_ONLY
#include <gpusched/admission/impl/node_bounds.ipp>
#endif
