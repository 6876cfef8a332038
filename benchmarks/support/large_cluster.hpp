// SPDX-License-Identifier: Apache-2.0
// The large cluster of the benchmarks of the model and of live state.
#pragma once

#include <gpusched/model/spec.hpp>

#include <string>
#include <utility>

namespace gpusched::bench {

/// A node of 4 GPUs under a switch of 32 nodes.
inline NodeSpec large_cluster_node(int n) {
    NodeSpec node;
    node.name = "node-" + std::to_string(n);
    node.gpu_model = n % 3 == 0 ? "A100" : n % 3 == 1 ? "H800" : "L20";
    node.gpu_count = 4;
    node.cpu_milli = 128'000;
    node.memory_mib = 1'048'576;
    node.network = {"cluster", "agg-" + std::to_string(n / 512), "asw-" + std::to_string(n / 32)};
    return node;
}

/// Such nodes, each with `tasks_per_node` tasks of half a GPU, one GPU or none. Jobs have 8 tasks; a third of
/// the tasks has an anti-affinity to its job, with at most 4 of them on a node.
inline ClusterSpec large_cluster(int nodes, int tasks_per_node) {
    ClusterSpec spec;
    for (int n = 0; n < nodes; ++n) {
        auto node = large_cluster_node(n);
        for (int i = 0; i < tasks_per_node; ++i) {
            TaskSpec task;
            const auto id = n * tasks_per_node + i;
            task.name = "namespace/task-" + std::to_string(id);
            task.job = "job-" + std::to_string(id / 8);
            task.cpu_milli = 8'000;
            task.memory_mib = 32'768;
            task.gpu_count = i < 6 ? 1 : 0;
            if (i >= 2) task.gpu_share_milli = task.gpu_count == 1 ? 500 : 1000;
            if (task.gpu_count == 1) task.gpus = {i < 2 ? i : 2 + (i - 2) / 2};
            if (id % 3 == 0) task.anti_affinity = {{task.job, node_level, 4}};
            task.gpu_models = {node.gpu_model};
            task.node = node.name;
            spec.tasks.push_back(std::move(task));
        }
        spec.nodes.push_back(std::move(node));
    }
    return spec;
}

}  // namespace gpusched::bench
