// SPDX-License-Identifier: Apache-2.0
// FreeIndex: the nodes of one group that may receive tasks, ordered by their free GPUs and cores.
#pragma once

#include <gpusched/config.hpp>
#include <gpusched/consolidation/scope.hpp>
#include <gpusched/core/gpu_mask.hpp>
#include <gpusched/model/cluster.hpp>
#include <gpusched/model/inventory.hpp>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

namespace gpusched::consolidation {

namespace detail {

/// Doubly linked lists of slots 0, 1, ..., one per key, and a bitmap that finds the next key with a slot.
/// O(1) per change.
class BucketLists {
  public:
    explicit BucketLists(std::uint32_t keys) : head_(keys, end_mark), used_((keys + 63) / 64) {}

    /// Prepares for slots below `slots`.
    void grow(std::size_t slots) { links_.resize(std::max(links_.size(), slots)); }
    [[nodiscard]] bool contains(std::uint32_t slot) const noexcept {
        return slot < links_.size() && links_[slot].key != end_mark;
    }

    void insert(std::uint32_t slot, std::uint32_t key) {
        auto& link = links_[slot];
        link = {key, head_[key], end_mark};
        if (link.next != end_mark) links_[link.next].previous = slot;
        head_[key] = slot;
        used_[key / 64] |= std::uint64_t{1} << key % 64;
    }
    void erase(std::uint32_t slot) {
        auto& link = links_[slot];
        (link.previous == end_mark ? head_[link.key] : links_[link.previous].next) = link.next;
        if (link.next != end_mark) links_[link.next].previous = link.previous;
        if (head_[link.key] == end_mark) used_[link.key / 64] &= ~(std::uint64_t{1} << link.key % 64);
        link.key = end_mark;
    }
    void move(std::uint32_t slot, std::uint32_t key) {
        if (links_[slot].key == key) return;
        if (contains(slot)) erase(slot);
        insert(slot, key);
    }

    /// Calls `offer(slot)` for the slots with keys low .. high - 1, ascending, until it returns true.
    template <class Offer>
    bool visit(std::uint32_t low, std::uint32_t high, Offer&& offer) const {
        for (auto key = next(low, high); key < high; key = next(key + 1, high))
            for (auto at = head_[key]; at != end_mark; at = links_[at].next)
                if (offer(at)) return true;
        return false;
    }
    /// The smallest key of low .. high - 1 that holds a slot, or `high`.
    [[nodiscard]] std::uint32_t next(std::uint32_t low, std::uint32_t high) const noexcept {
        if (low >= high) return high;
        auto word = low / 64;
        auto bits = used_[word] & (~std::uint64_t{0} << low % 64);
        while (bits == 0) {
            if (++word * 64 >= high) return high;
            bits = used_[word];
        }
        return std::min(high, word * 64 + static_cast<std::uint32_t>(std::countr_zero(bits)));
    }

  private:
    static constexpr std::uint32_t end_mark = 0xFFFFFFFFu;
    struct Link {
        std::uint32_t key = end_mark, next = end_mark, previous = end_mark;
    };
    std::vector<Link> links_;
    std::vector<std::uint32_t> head_;
    std::vector<std::uint64_t> used_;
};

}  // namespace detail

/// Finds nodes by idle GPUs and free cores, tightest first, and by the free share of partly used GPUs.
///
/// Keys include lent capacity, which LP tasks may take, so that no node that could hold a task is left out;
/// the caller checks each offered node. The order of nodes with equal keys has no meaning.
///
/// It has two uses. As a follower (follower.hpp) it holds all nodes that receive tasks
/// (`NodeTable::receives`). In a search it holds one group: the search calls `reset` for every group, and
/// `usage_changed` for every node that it changes, also after `undo`.
class FreeIndex {
  public:
    FreeIndex() = default;
    /// Empty until `reset`.
    explicit FreeIndex(const Cluster& cluster) { prepare(cluster); }

    /// Indexes all nodes that receive tasks.
    void rebuild(const Cluster& cluster) {
        prepare(cluster);
        grow(cluster.node_slots());
        for (const auto node : cluster.nodes())
            if (receives(cluster, node)) {
                receivers_.push_back(node);
                open(cluster, node);
            }
    }
    /// Indexes a new group in place of the former one. Nodes that may be opened are closed while they are
    /// empty.
    void reset(const Cluster& cluster, std::span<const NodeId> group, const Scope& scope) {
        for (const auto node : receivers_) {
            close(node);
            if (scope_ != nullptr) slots_[index(node)] = no_slot;
        }
        receivers_.clear();
        forget_eligible();
        scope_ = &scope;
        slots_.resize(cluster.node_slots(), no_slot);
        grow(group.size());
        for (const auto node : group) {
            if (!scope.receives(node)) continue;
            slots_[index(node)] = static_cast<std::uint32_t>(receivers_.size());
            receivers_.push_back(node);
            if (!scope.opens(node) || cluster.occupants(node) > 0) open(cluster, node);
        }
    }
    /// Must be called after every change of a node's tasks.
    void usage_changed(const Cluster& cluster, NodeId node) {
        if (!is_open(node)) return;
        const auto slot = slot_of(node);
        const auto idle = cluster.idle_gpus(node, Lent::yes);
        whole_.move(slot, whole_key(gpu_count(idle), cluster.cpu_free_milli(node, Lent::yes)));
        int most = 0;
        for_each_gpu(static_cast<GpuMask>(cluster.healthy_gpus(node) & ~idle),
                     [&](int g) { most = std::max(most, cluster.gpu_free_milli(node, g, Lent::yes)); });
        if (most > 0)
            partial_.move(slot, static_cast<std::uint32_t>(most));
        else if (partial_.contains(slot))
            partial_.erase(slot);
    }
    /// Follows a node that was added, changed or removed; only without a group.
    void node_changed(const Cluster& cluster, NodeId node) {
        GPUSCHED_ASSERT(scope_ == nullptr);
        if (cluster.gpu_count(node) > most_gpus_) return rebuild(cluster);
        grow(cluster.node_slots());
        forget_eligible();
        close(node);
        const auto at = std::lower_bound(receivers_.begin(), receivers_.end(), node);
        const bool listed = at != receivers_.end() && *at == node;
        if (!receives(cluster, node)) {
            if (listed) receivers_.erase(at);
            return;
        }
        if (!listed) receivers_.insert(at, node);
        open(cluster, node);
    }

    /// All nodes of the group that may receive, in group order, closed ones included.
    [[nodiscard]] std::span<const NodeId> receivers() const noexcept { return receivers_; }
    /// The receivers that the task accepts (GPU model, labels, taints).
    [[nodiscard]] std::span<const NodeId> receivers_for(const Cluster& cluster, TaskId task) const {
        const auto& inv = cluster.inventory();
        const auto requirement = inv.tasks.requirement[index(task)];
        if (eligible_.size() <= requirement) eligible_.resize(inv.requirements.size());
        auto& list = eligible_[requirement];
        const auto since = Inventory::since(inv.requirement_since, requirement);
        if (!list.known || list.since != since) {
            if (!list.known) known_.push_back(requirement);
            list = {.known = true, .since = since, .nodes = {}};
            for (const auto node : receivers_)
                if (inv.eligible(requirement, inv.nodes.node_class[index(node)])) list.nodes.push_back(node);
        }
        return list.nodes;
    }
    [[nodiscard]] bool is_open(NodeId node) const noexcept { return whole_.contains(slot_of(node)); }

    /// Removes a node: nothing moves there any more.
    void close(NodeId node) {
        if (!is_open(node)) return;
        const auto slot = slot_of(node);
        whole_.erase(slot);
        if (partial_.contains(slot)) partial_.erase(slot);
    }
    void open(const Cluster& cluster, NodeId node) {
        if (!receives(cluster, node)) return;
        GPUSCHED_ASSERT(slot_of(node) != no_slot);
        whole_.insert(slot_of(node), 0);
        usage_changed(cluster, node);
    }

    /// Nodes with at least `idle` idle GPUs and `cpu_milli` free: fewest idle GPUs first, then fewest cores.
    template <class Offer>
    bool visit_whole(int idle, std::int64_t cpu_milli, Offer&& offer) const {
        for (int g = idle; g <= most_gpus_; ++g)
            if (visit_bucket(g, cpu_milli, offer)) return true;
        return false;
    }
    /// Nodes with exactly `idle` idle GPUs and at least `cpu_milli` free, fewest cores first.
    template <class Offer>
    bool visit_bucket(int idle, std::int64_t cpu_milli, Offer&& offer) const {
        return whole_.visit(whole_key(idle, cpu_milli), whole_key(idle + 1, 0),
                            [&](std::uint32_t slot) { return offer(node_in(slot)); });
    }
    /// Nodes with at least `share_milli` left on a partly used GPU, least first.
    template <class Offer>
    bool visit_partial(int share_milli, Offer&& offer) const {
        return partial_.visit(static_cast<std::uint32_t>(share_milli), share_steps,
                              [&](std::uint32_t slot) { return offer(node_in(slot)); });
    }

  private:
    static constexpr std::uint32_t cpu_steps = 256, share_steps = whole_gpu_milli;
    static constexpr std::uint32_t no_slot = 0xFFFFFFFFu;
    // With a group, the position among the receivers, so that its lists are close in memory; without one, the
    // id.
    [[nodiscard]] std::uint32_t slot_of(NodeId node) const noexcept {
        return scope_ == nullptr ? static_cast<std::uint32_t>(index(node)) : slots_[index(node)];
    }
    [[nodiscard]] NodeId node_in(std::uint32_t slot) const noexcept {
        return scope_ == nullptr ? make_id<NodeId>(slot) : receivers_[slot];
    }
    void grow(std::size_t slots) {
        whole_.grow(slots);
        partial_.grow(slots);
    }
    [[nodiscard]] std::uint32_t whole_key(int idle, std::int64_t cpu_milli) const noexcept {
        const auto step = std::clamp<std::int64_t>(cpu_milli / cpu_step_, 0, cpu_steps - 1);
        return static_cast<std::uint32_t>(idle) * cpu_steps + static_cast<std::uint32_t>(step);
    }
    void prepare(const Cluster& cluster) {
        most_gpus_ = largest_gpu_count(cluster.inventory());
        whole_ = detail::BucketLists(static_cast<std::uint32_t>(most_gpus_ + 1) * cpu_steps);
        partial_ = detail::BucketLists(share_steps);
        eligible_.assign(cluster.inventory().requirements.size(), {});
        known_.clear();
        receivers_.clear();
        slots_.clear();
        scope_ = nullptr;
        std::int64_t most_cpu = 0;
        for (const auto node : cluster.nodes())
            most_cpu = std::max(most_cpu, cluster.inventory().nodes.cpu_milli[index(node)]);
        cpu_step_ = most_cpu / (cpu_steps - 1) + 1;
        if (cpu_step_ < 1000 && most_cpu < 1000 * (cpu_steps - 1))
            cpu_step_ = 1000;  // whole cores if the steps suffice
    }
    [[nodiscard]] bool receives(const Cluster& cluster, NodeId node) const {
        if (scope_ != nullptr) return scope_->receives(node);
        return cluster.contains(node) && cluster.inventory().nodes.receives(node);
    }
    void forget_eligible() {
        for (const auto requirement : known_) eligible_[requirement] = {};
        known_.clear();
    }

    const Scope* scope_ = nullptr;  // of the group; null = all nodes that receive tasks
    std::int64_t cpu_step_ = 1000;
    int most_gpus_ = 0;                          // of any node
    detail::BucketLists whole_{0}, partial_{0};  // of slots
    std::vector<std::uint32_t> slots_;           // of the group's receivers, by NodeId
    std::vector<NodeId> receivers_;
    // Computed on first use. Safe although mutable, since an index serves one search.
    struct Eligible {
        bool known = false;
        std::uint64_t since = 0;  // see Inventory::requirement_since
        std::vector<NodeId> nodes;
    };
    mutable std::vector<Eligible> eligible_;  // by requirement
    mutable std::vector<std::uint32_t> known_;
};

}  // namespace gpusched::consolidation
