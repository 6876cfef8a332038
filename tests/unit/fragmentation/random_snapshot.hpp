// SPDX-License-Identifier: Apache-2.0
// Small random snapshots with everything that makes metrics go wrong. That metrics follow changes is tested with all followers.
#pragma once

#include "support/catch.hpp"

#include <gpusched/core/rng.hpp>
#include <gpusched/fragmentation/fragmentation.hpp>
#include <gpusched/model/feasibility.hpp>

namespace fragmentation_test {

using namespace gpusched;

inline NodeSpec node(std::string name, std::string model, std::int64_t gpus, std::int64_t cores,
                     std::vector<std::string> network) {
    return {.name = std::move(name),
            .gpu_model = std::move(model),
            .gpu_count = gpus,
            .cpu_milli = 1000 * cores,
            .network = std::move(network)};
}

inline NodeSpec random_node(Rng& rng, std::size_t i) {
    static constexpr int sizes[] = {0, 1, 2, 4, 8, 8, 8, 16};
    NodeSpec node{.name = "n" + std::to_string(i)};
    node.gpu_count = sizes[rng.below(8)];
    if (rng.chance(0.9)) node.gpu_model = "M" + std::to_string(rng.below(3));
    node.cpu_milli = 500 * rng.between(4, 24) * std::max<std::int64_t>(1, node.gpu_count);
    node.memory_mib = 1 << 20;
    node.schedulable = !rng.chance(0.1);
    const auto depth = rng.below(4);  // a tree of uneven depth, with nodes that are nowhere
    if (depth > 0) node.network.push_back("c" + std::to_string(rng.below(2)));
    if (depth > 1) node.network.push_back(node.network.back() + "-a" + std::to_string(rng.below(2)));
    if (depth > 2) node.network.push_back(node.network.back() + "-s" + std::to_string(rng.below(3)));
    return node;
}

inline TaskSpec random_task(Rng& rng, const std::string& name, bool spot) {
    static constexpr int counts[] = {0, 1, 1, 1, 1, 2, 4, 8};
    static constexpr int shares[] = {100, 250, 300, 500, 999};
    TaskSpec task{.name = name};
    task.gpu_count = counts[rng.below(8)];
    if (task.gpu_count == 1 && rng.chance(0.4)) task.gpu_share_milli = shares[rng.below(5)];
    task.cpu_milli = 500 * rng.between(0, 12) * std::max<std::int64_t>(1, task.gpu_count);
    if (rng.chance(0.3)) task.gpu_models = {"M" + std::to_string(rng.below(3))};
    task.priority_class = spot              ? PriorityClass::lp
                          : rng.chance(0.7) ? PriorityClass::hp
                                            : PriorityClass::other;
    task.daemon = task.gpu_count == 0 && rng.chance(0.3);
    if (rng.chance(0.6)) task.job = "j" + std::to_string(rng.below(6));
    return task;
}

/// A random node on which the task fits, with random GPUs of it; false if none was found.
inline bool place_at_random(Cluster& cluster, TaskId task, Rng& rng) {
    for (int attempt = 0; attempt < 20; ++attempt) {
        const auto node = make_id<NodeId>(rng.below(cluster.node_count()));
        if (find_obstacle(cluster, task, node) != Obstacle::none) continue;
        std::vector<int> gpus;
        for_each_gpu(candidate_gpus(cluster, task, node), [&](int g) { gpus.push_back(g); });
        rng.shuffle(std::span(gpus));
        GpuMask mask = 0;
        for (int k = 0; k < cluster.inventory().tasks.gpu_count[index(task)]; ++k)
            mask |= gpu_bit(gpus[static_cast<std::size_t>(k)]);
        cluster.assign(task, node, mask);
        return true;
    }
    return false;
}

/// Nodes of all kinds, tasks of all kinds; some GPUs in use have failed, some claims are lent.
inline ClusterSpec random_snapshot(std::uint64_t seed, std::size_t nodes = 30, std::size_t tasks = 70) {
    Rng rng(seed);
    ClusterSpec spec;
    for (std::size_t i = 0; i < nodes; ++i) spec.nodes.push_back(random_node(rng, i));
    for (std::size_t i = 0; i < tasks; ++i)
        spec.tasks.push_back(random_task(rng, "t" + std::to_string(i), false));
    auto cluster = Cluster::build(spec);
    for (const auto task : cluster.tasks()) place_at_random(cluster, task, rng);

    spec = cluster.to_spec();
    for (auto& task : spec.tasks)
        task.standby =
            task.node && task.priority_class == PriorityClass::hp && !task.daemon && rng.chance(0.3);
    for (auto& node : spec.nodes)
        for (int g = 0; g < node.gpu_count; ++g)
            if (rng.chance(0.05)) node.failed_gpus.push_back(g);
    for (std::size_t i = 0; i < tasks / 3; ++i)
        spec.tasks.push_back(random_task(rng, "lp" + std::to_string(i), true));
    cluster = Cluster::build(spec);
    for (const auto task : cluster.tasks())
        if (!cluster.is_placed(task) && cluster.may_borrow(task)) place_at_random(cluster, task, rng);
    return cluster.to_spec();
}

/// What a node has left for tasks without spot rights, worked out from the description alone.
struct FreeNode {
    std::vector<int> gpu_milli;
    std::int64_t cpu_milli = 0;

    [[nodiscard]] int idle_milli() const {
        int sum = 0;
        for (const int milli : gpu_milli) sum += milli;
        return sum;
    }
};

inline std::vector<FreeNode> free_nodes(const ClusterSpec& spec) {
    std::vector<FreeNode> out;
    for (const auto& node : spec.nodes) {
        std::vector<int> consumed(static_cast<std::size_t>(node.gpu_count)), claimed = consumed;
        std::int64_t cpu_consumed = 0, cpu_claimed = 0;
        for (const auto& task : spec.tasks) {
            if (!task.node || *task.node != node.name) continue;
            const bool lp = task.priority_class == PriorityClass::lp;
            for (const int g : task.gpus) {
                const auto share = static_cast<int>(task.gpu_share_milli);
                if (!task.standby) consumed[static_cast<std::size_t>(g)] += share;
                if (!lp) claimed[static_cast<std::size_t>(g)] += share;
            }
            if (!task.standby) cpu_consumed += task.cpu_milli;
            if (!lp) cpu_claimed += task.cpu_milli;
        }
        FreeNode free;
        for (int g = 0; g < node.gpu_count; ++g) {
            const auto i = static_cast<std::size_t>(g);
            const bool failed =
                std::find(node.failed_gpus.begin(), node.failed_gpus.end(), g) != node.failed_gpus.end();
            free.gpu_milli.push_back(failed ? 0 : 1000 - std::max(consumed[i], claimed[i]));
        }
        free.cpu_milli = node.cpu_milli - std::max(cpu_consumed, cpu_claimed);
        out.push_back(free);
    }
    return out;
}

}  // namespace fragmentation_test
