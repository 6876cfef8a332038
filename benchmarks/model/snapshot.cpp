// SPDX-License-Identifier: Apache-2.0
// What a snapshot of 40,000 nodes, 160,000 GPUs and 200,000 tasks costs: memory, copies, changes.
//
//   bench_model_snapshot [--smoke]
//
// One JSON line. Memory is what the allocator hands out, so that its own overhead counts; `move_ns` is one feasibility
// question and, where it says yes, one change of a random task on a random node; `undo_ns` is one undo.
#include <gpusched/core/rng.hpp>
#include <gpusched/model/cluster.hpp>
#include <gpusched/model/feasibility.hpp>

#include <malloc.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <string>
#include <string_view>

namespace {

using namespace gpusched;

std::size_t heap_bytes() {
    const auto info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

// Processor time, which a busy machine disturbs least.
double milliseconds(std::clock_t since) {
    return static_cast<double>(std::clock() - since) * 1e3 / CLOCKS_PER_SEC;
}

// Nodes of 4 GPUs under switches of 32; tasks of a quarter of a GPU to one, a third in a group, jobs of 8.
ClusterSpec make(int nodes, int per_node) {
    ClusterSpec spec;
    for (int n = 0; n < nodes; ++n) {
        NodeSpec node;
        node.name = "node-" + std::to_string(n);
        node.gpu_model = n % 3 == 0 ? "A100" : n % 3 == 1 ? "H800" : "L20";
        node.gpu_count = 4;
        node.cpu_milli = 128'000;
        node.memory_mib = 1'048'576;
        node.network = {"cluster", "agg-" + std::to_string(n / 512), "asw-" + std::to_string(n / 32)};
        for (int i = 0; i < per_node; ++i) {
            TaskSpec task;
            const auto id = n * per_node + i;
            task.name = "namespace/task-" + std::to_string(id);
            task.job = "job-" + std::to_string(id / 8);
            task.cpu_milli = 8'000;
            task.memory_mib = 32'768;
            task.gpu_count = i < 6 ? 1 : 0;
            if (i >= 2) task.gpu_share_milli = task.gpu_count == 1 ? 500 : 1000;
            if (task.gpu_count == 1) task.gpus = {i < 2 ? i : 2 + (i - 2) / 2};
            if (id % 3 == 0) task.anti_affinity = {{task.job, node_level, 4}};
            task.gpu_models = {node.gpu_model};
            task.locked = id % 5 < 2;
            task.node = node.name;
            spec.tasks.push_back(std::move(task));
        }
        spec.nodes.push_back(std::move(node));
    }
    return spec;
}

}  // namespace

int main(int argc, char** argv) {
    const bool smoke = argc > 1 && std::string_view(argv[1]) == "--smoke";
    const int nodes = smoke ? 1'000 : 40'000;
    const int attempts = smoke ? 10'000 : 2'000'000;
    const auto spec = make(nodes, 5);

    const auto empty = heap_bytes();
    auto start = std::clock();
    auto cluster = Cluster::build(spec);
    const auto build_ms = milliseconds(start);
    const auto built = heap_bytes() - empty;

    start = std::clock();
    const auto copy = cluster;
    const auto copy_ms = milliseconds(start);
    const auto copied = heap_bytes() - empty - built;

    // Random moves to wherever there is room, all undone at the end.
    Rng rng(1);
    int moves = 0;
    start = std::clock();
    for (int i = 0; i < attempts; ++i) {
        const auto task = make_id<TaskId>(rng.below(cluster.task_count()));
        const auto node = make_id<NodeId>(rng.below(cluster.node_count()));
        if (find_obstacle(cluster, task, node) != Obstacle::none) continue;
        const auto count = cluster.inventory().tasks.gpu_count[index(task)];
        cluster.assign(task, node, lowest_gpus(candidate_gpus(cluster, task, node), count));
        ++moves;
    }
    const auto moves_ms = milliseconds(start);
    start = std::clock();
    cluster.rollback(0);
    const auto undo_ms = milliseconds(start);

    const auto per_node = static_cast<double>(copied) / nodes;
    const auto per_task = static_cast<double>(built) / static_cast<double>(cluster.task_count());
    std::printf("{\"nodes\": %d, \"gpus\": %d, \"tasks\": %zu, \"build_ms\": %.0f, \"snapshot_mib\": %.1f, "
                "\"snapshot_bytes_per_task\": %.0f, \"copy_mib\": %.1f, \"copy_bytes_per_node\": %.0f, "
                "\"copy_ms\": %.2f, "
                "\"questions\": %d, \"moves\": %d, \"move_ns\": %.0f, \"undo_ns\": %.0f}\n",
                nodes, 4 * nodes, cluster.task_count(), build_ms, static_cast<double>(built) / 1048576,
                per_task, static_cast<double>(copied) / 1048576, per_node, copy_ms, attempts, moves,
                moves_ms * 1e6 / attempts, undo_ms * 1e6 / std::max(1, moves));
    return cluster.same_placement(copy) ? 0 : 1;
}
