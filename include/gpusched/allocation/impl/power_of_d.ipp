#pragma once

#include <gpusched/allocation/power_of_d.hpp>
#include <gpusched/core/errors.hpp>
#include <gpusched/model/feasibility.hpp>

#include <algorithm>
#include <span>
#include <string>

namespace gpusched::allocation {
namespace detail {

inline std::int32_t load_of(const Cluster& cluster, NodeId node) {
    const auto part = [](std::int64_t free, std::int64_t capacity) {
        return capacity == 0 ? 0 : static_cast<std::int32_t>(1000 * (capacity - free) / capacity);
    };
    const auto gpus = std::int64_t{whole_gpu_milli} * gpu_count(cluster.healthy_gpus(node));
    return std::max(part(cluster.cpu_free_milli(node), cluster.inventory().nodes.cpu_milli[index(node)]),
                    part(cluster.gpu_free_milli(node), gpus));
}

}  // namespace detail

GPUSCHED_INLINE PowerOfD::PowerOfD(const PowerOfDOptions& options) : options_(options) {
    Problems problems;
    if (options.choices < 1 || options.choices > 1000)
        problems.add("choices is " + std::to_string(options.choices) + "; expected 1 to 1000");
    if (options.refresh_every < 1)
        problems.add("refresh_every is " + std::to_string(options.refresh_every) + "; expected at least 1");
    problems.throw_if_any();
}

GPUSCHED_INLINE std::optional<Destination> PowerOfD::operator()(const Cluster& cluster, TaskId task,
                                                                Rng& rng) {
    const auto nodes = cluster.node_count();
    if (nodes == 0) return std::nullopt;
    if (until_refresh_ == 0 || loads_.size() != nodes) {
        loads_.clear();
        for (const auto node : cluster.nodes()) loads_.push_back(detail::load_of(cluster, node));
        until_refresh_ = options_.refresh_every;
    }
    --until_refresh_;

    NodeId best = none<NodeId>;
    int found = 0;
    const auto consider = [&](NodeId node) {
        ++found;
        if (best == none<NodeId> || loads_[index(node)] < loads_[index(best)]) best = node;
    };
    for (int draws = 0; draws < 16 * options_.choices && found < options_.choices; ++draws) {
        const auto node = make_id<NodeId>(static_cast<std::size_t>(rng.below(nodes)));
        if (find_obstacle(cluster, task, node) == Obstacle::none) consider(node);
    }
    if (best == none<NodeId>) {  // feasible nodes are rare: find them all
        feasible_.clear();
        for (const auto node : cluster.nodes())
            if (find_obstacle(cluster, task, node) == Obstacle::none) feasible_.push_back(node);
        if (feasible_.empty()) return std::nullopt;
        while (found < options_.choices) consider(rng.pick(std::span(feasible_)));
    }
    if (cluster.inventory().tasks.gpu_count[index(task)] == 0) return Destination{best, 0};
    return Destination{best, TightestGpu{}(cluster, task, best)};
}

}  // namespace gpusched::allocation
