// SPDX-License-Identifier: Apache-2.0
// What the inner loops of the searches cost: feasibility, a move and its undo, FGD, the best set of GPUs of a machine.
//
//   bench_micro_inner_loops [--benchmark_filter=...]
//
// One generated cluster of 4,000 nodes; tasks and nodes are taken in a fixed random order, so that caches miss as in a search.
#include <gpusched/core/rng.hpp>
#include <gpusched/fragmentation/fgd.hpp>
#include <gpusched/fragmentation/incremental.hpp>
#include <gpusched/model/feasibility.hpp>
#include <gpusched/sim/generator.hpp>
#include <gpusched/topology/hardware_graph.hpp>

#include <benchmark/benchmark.h>

#include <utility>
#include <vector>

namespace {

using namespace gpusched;

struct World {
    Cluster cluster = Cluster::build(sim::generate_cluster({.nodes = 4'000, .seed = 1}));
    std::vector<std::pair<TaskId, NodeId>> pairs;     // any task and any node
    std::vector<std::pair<TaskId, NodeId>> feasible;  // where the task could go

    World() {
        Rng rng(1);
        while (feasible.size() < 20'000) {
            const auto task = make_id<TaskId>(rng.below(cluster.task_count()));
            const auto node = make_id<NodeId>(rng.below(cluster.node_count()));
            pairs.emplace_back(task, node);
            if (find_obstacle(cluster, task, node) == Obstacle::none) feasible.emplace_back(task, node);
        }
    }
};

World& world() {
    static World made;
    return made;
}

void feasibility(benchmark::State& state) {
    const auto& [cluster, pairs, feasible] = world();
    std::size_t i = 0, found = 0;
    for (auto _ : state) {
        const auto [task, node] = pairs[i++ % pairs.size()];
        found += find_obstacle(cluster, task, node) == Obstacle::none;
    }
    state.counters["feasible"] =
        benchmark::Counter(static_cast<double>(found), benchmark::Counter::kAvgIterations);
}
BENCHMARK(feasibility);

void move_and_undo(benchmark::State& state) {
    auto& [cluster, pairs, feasible] = world();
    std::size_t i = 0;
    for (auto _ : state) {
        const auto [task, node] = feasible[i++ % feasible.size()];
        const auto count = cluster.inventory().tasks.gpu_count[index(task)];
        cluster.assign(task, node, lowest_gpus(candidate_gpus(cluster, task, node), count));
        cluster.rollback(0);
    }
}
BENCHMARK(move_and_undo);

void fgd_of_a_placement(benchmark::State& state) {
    const auto& [cluster, pairs, feasible] = world();
    const fragmentation::Fgd fgd(fragmentation::typical_workload(cluster), cluster.inventory());
    std::size_t i = 0;
    for (auto _ : state) {
        const auto [task, node] = feasible[i++ % feasible.size()];
        benchmark::DoNotOptimize(fgd.best(cluster, task, node, candidate_gpus(cluster, task, node)));
    }
}
BENCHMARK(fgd_of_a_placement);

void best_gpus(benchmark::State& state) {
    const auto machine = topology::HardwareGraph::preset("a100x8").value();
    const auto count = static_cast<int>(state.range(0));
    unsigned free = 0;
    for (auto _ : state) {
        free = (free * 5 + 1) & 0xFF;  // every set of eight in turn
        benchmark::DoNotOptimize(machine.best_gpus(count, static_cast<GpuMask>(free)));
    }
}
BENCHMARK(best_gpus)->Arg(2)->Arg(4);

}  // namespace
