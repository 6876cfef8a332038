// SPDX-License-Identifier: Apache-2.0
// Power of d choices: picks the least loaded of a few random nodes, by loads that may be old.
#pragma once

#include <gpusched/allocation/concepts.hpp>
#include <gpusched/allocation/detail/policy_checks.hpp>
#include <gpusched/allocation/filters.hpp>
#include <gpusched/allocation/gpu_pickers.hpp>
#include <gpusched/core/fields.hpp>
#include <gpusched/model/feasibility.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace gpusched::allocation {

struct PowerOfDOptions {
    int choices = 2;                 ///< d, 1 to 1000: how many feasible nodes are drawn, with replacement
    std::int64_t refresh_every = 1;  ///< loads are read again before every `refresh_every`-th task, >= 1
};
template <class F>
constexpr void visit_fields(std::type_identity<PowerOfDOptions>, F&& field) {
    field("choices", &PowerOfDOptions::choices, within(1, 1000));
    field("refresh_every", &PowerOfDOptions::refresh_every, at_least(1));
}

/// The larger of the allocated parts of a node's CPU and GPUs, in thousandths.
struct AllocatedPart {
    std::int32_t operator()(const Cluster& cluster, NodeId node) const noexcept {
        const auto part = [](std::int64_t free, std::int64_t capacity) {
            return capacity == 0 ? 0 : static_cast<std::int32_t>(1000 * (capacity - free) / capacity);
        };
        const auto gpus = std::int64_t{whole_gpu_milli} * gpu_count(cluster.healthy_gpus(node));
        return std::max(part(cluster.cpu_free_milli(node), cluster.inventory().nodes.cpu_milli[index(node)]),
                        part(cluster.gpu_free_total_milli(node), gpus));
    }
};

/// Sends a task to the least loaded of d random feasible nodes (Mitzenmacher, "The Power of Two Choices in
/// Randomized Load Balancing", 2001): nearly as even as comparing all nodes, at the cost of d nodes.
///
/// Loads are cached and read again only every `refresh_every` tasks, as in schedulers that learn loads from
/// heartbeats; feasibility and the filter are always current. Of equal loads the first drawn wins.
///
/// Complexity: O(d) nodes per task while suitable nodes are common, O(nodes) when they are rare.
template <class P = TightestGpu, class F = AnyNode, class L = AllocatedPart>
class PowerOfD {
    static_assert(detail::check_gpu_picker<P>());
    static_assert(detail::check_filter<F>());
    static_assert(detail::check_node_load<L>());

  public:
    /// @throws InvalidInput for options out of range
    explicit PowerOfD(const PowerOfDOptions& options = {}, P picker = {}, F filter = {}, L load = {})
        : options_(options), picker_(std::move(picker)), filter_(std::move(filter)), load_(std::move(load)) {
        require_fields(options);
    }

    std::optional<Destination> operator()(const Cluster& cluster, TaskId task, Rng& rng) {
        const auto nodes = cluster.node_slots();
        if (nodes == 0) return std::nullopt;
        if (until_refresh_ == 0 || loads_.size() != nodes) {
            loads_.resize(nodes);
            for (const auto node : cluster.nodes()) loads_[index(node)] = load_(cluster, node);
            until_refresh_ = options_.refresh_every;
        }
        --until_refresh_;

        const auto will_do = [&](NodeId node) {
            return find_obstacle(cluster, task, node) == Obstacle::none && filter_(cluster, task, node);
        };
        NodeId best = none<NodeId>;
        int found = 0;
        const auto consider = [&](NodeId node) {
            ++found;
            if (best == none<NodeId> || loads_[index(node)] < loads_[index(best)]) best = node;
        };
        for (int draws = 0; draws < 16 * options_.choices && found < options_.choices; ++draws) {
            const auto node = make_id<NodeId>(static_cast<std::size_t>(rng.below(nodes)));
            if (cluster.contains(node) && will_do(node)) consider(node);
        }
        if (best == none<NodeId>) {  // suitable nodes are rare: find them all
            candidates_.clear();
            for (const auto node : cluster.nodes())
                if (will_do(node)) candidates_.push_back(node);
            if (candidates_.empty()) return std::nullopt;
            while (found < options_.choices) consider(rng.pick(std::span(candidates_)));
        }
        return Destination{best, pick_gpus(picker_, cluster, task, best, rng)};
    }

  private:
    using Load = decltype(std::declval<const L&>()(std::declval<const Cluster&>(), NodeId{}));
    PowerOfDOptions options_;
    P picker_;
    F filter_;
    L load_;
    std::vector<Load> loads_;         // by NodeId, as of the last refresh
    std::vector<NodeId> candidates_;  // scratch
    std::int64_t until_refresh_ = 0;
};

}  // namespace gpusched::allocation
