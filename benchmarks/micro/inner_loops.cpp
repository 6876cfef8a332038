// SPDX-License-Identifier: Apache-2.0
// Measures the inner loops of the searches: feasibility, a move and its undo, FGD, the best set of GPUs of a
// machine, its hardware graph, the network tree, a window of the tail model, a node with many victims, a gang
// of several shapes.
//
//   bench_micro_inner_loops [--benchmark_filter=...]
//
// The environment variable GPUSCHED_ITERATIONS fixes the number of iterations, so that instructions.py can
// count instructions. All loops use one generated cluster of 4,000 nodes. They take tasks and nodes in a
// fixed random order, so that caches miss as in a search.
#include <gpusched/allocation/allocate.hpp>
#include <gpusched/allocation/gpu_pickers.hpp>
#include <gpusched/control/estimators.hpp>
#include <gpusched/core/rng.hpp>
#include <gpusched/fragmentation/fgd.hpp>
#include <gpusched/fragmentation/incremental.hpp>
#include <gpusched/model/feasibility.hpp>
#include <gpusched/preemption/preempt.hpp>
#include <gpusched/sim/generator.hpp>
#include <gpusched/topology/hardware_graph.hpp>
#include <gpusched/topology/network_tree.hpp>

#include <benchmark/benchmark.h>

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace gpusched;

struct World {
    Cluster cluster = Cluster::build(sim::generate_cluster({.nodes = 4'000, .seed = 1}));
    std::vector<std::pair<TaskId, NodeId>> pairs;     // any task and any node
    std::vector<std::pair<TaskId, NodeId>> feasible;  // any task and a node that can take it

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

// Fixes the number of iterations if GPUSCHED_ITERATIONS is set. It builds the cluster before the first
// benchmark starts, so that counts of instructions exclude it.
void set_iterations(benchmark::internal::Benchmark* benchmark) {
    if (const char* const times = std::getenv("GPUSCHED_ITERATIONS")) {
        (void)world();
        benchmark->Iterations(std::atoi(times));
    }
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
BENCHMARK(feasibility)->Apply(set_iterations);

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
BENCHMARK(move_and_undo)->Apply(set_iterations);

void fgd_of_a_placement(benchmark::State& state) {
    const auto& [cluster, pairs, feasible] = world();
    const fragmentation::Fgd fgd(fragmentation::typical_workload(cluster), cluster.inventory());
    std::size_t i = 0;
    for (auto _ : state) {
        const auto [task, node] = feasible[i++ % feasible.size()];
        benchmark::DoNotOptimize(fgd.best(cluster, task, node, candidate_gpus(cluster, task, node)));
    }
}
BENCHMARK(fgd_of_a_placement)->Apply(set_iterations);

void best_gpus(benchmark::State& state) {
    const auto machine = topology::HardwareGraph::preset("a100x8").value();
    const auto count = static_cast<int>(state.range(0));
    unsigned free = 0;
    for (auto _ : state) {
        free = (free * 5 + 1) & 0xFF;  // every set of eight in turn
        benchmark::DoNotOptimize(machine.best_gpus(count, static_cast<GpuMask>(free)));
    }
}
BENCHMARK(best_gpus)->Arg(2)->Arg(4)->Apply(set_iterations);

void pick_gpus(benchmark::State& state) {
    const auto& [cluster, pairs, feasible] = world();
    std::size_t i = 0;
    for (auto _ : state) {
        const auto [task, node] = feasible[i++ % feasible.size()];
        benchmark::DoNotOptimize(allocation::ByWish{}(cluster, task, node));
    }
}
BENCHMARK(pick_gpus)->Apply(set_iterations);

void hardware_graph(benchmark::State& state) {
    const auto hardware = hardware_preset("rtx4090x8").value();
    for (auto _ : state) benchmark::DoNotOptimize(topology::HardwareGraph(hardware, {.nvlink_gb_s = 300}));
}
BENCHMARK(hardware_graph)->Apply(set_iterations);

void network_tree(benchmark::State& state) {
    const auto& inventory = world().cluster.inventory();
    for (auto _ : state) benchmark::DoNotOptimize(topology::NetworkTree(inventory));
}
BENCHMARK(network_tree)->Apply(set_iterations);

void tail_model(benchmark::State& state) {
    control::TailModel model;
    Rng rng(1);
    for (auto _ : state) {
        const control::Exposure seen{rng.uniform(), rng.uniform(), 1 + rng.uniform(), rng.uniform()};
        model.update(seen, 0.1, 20 * rng.uniform(), 15);
        benchmark::DoNotOptimize(model.predict({0.5, 0.5, 1, 0.5}, 12));
    }
}
BENCHMARK(tail_model)->Apply(set_iterations);

// Frees two GPUs of a machine that is full of fractions, more than fit into 64 bits.
void preempt_many(benchmark::State& state) {
    ClusterSpec spec;
    spec.nodes = {{.name = "n", .gpu_count = 8, .cpu_milli = 1'000'000}};
    Rng rng(1);
    for (int i = 0; i < 128; ++i)
        spec.tasks.push_back({.name = "t" + std::to_string(i),
                              .cpu_milli = 100 * rng.between(1, 5),
                              .gpu_count = 1,
                              .gpu_share_milli = 60,
                              .priority = rng.between(1, 90),
                              .priority_class = PriorityClass::lp,
                              .node = "n",
                              .gpus = {i % 8}});
    spec.tasks.push_back(
        {.name = "new", .gpu_count = 2, .priority = 100, .priority_class = PriorityClass::hp});
    const auto cluster = Cluster::build(spec);
    const auto task = cluster.find_task("new");
    for (auto _ : state) benchmark::DoNotOptimize(preemption::preempt(cluster, task, {.search_limit = 1000}));
}
BENCHMARK(preempt_many)->Apply(set_iterations);

// Packs pods with two GPUs, one GPU and parts of one on six machines. One pod is too many; only the exact
// search finds out.
void pack_gang(benchmark::State& state) {
    ClusterSpec spec;
    std::vector<TaskId> pods;
    for (int i = 0; i < 6; ++i)
        spec.nodes.push_back({.name = "n" + std::to_string(i), .gpu_count = 4, .cpu_milli = 64'000});
    const auto add = [&](int count, std::int64_t gpus, std::int64_t share_milli) {
        for (int i = 0; i < count; ++i) {
            pods.push_back(make_id<TaskId>(spec.tasks.size()));
            spec.tasks.push_back({.name = "p" + std::to_string(spec.tasks.size()),
                                  .cpu_milli = 4'000,
                                  .gpu_count = gpus,
                                  .gpu_share_milli = share_milli});
        }
    };
    add(5, 2, 1000);
    add(6, 1, 1000);
    add(9, 1, 600);
    const auto cluster = Cluster::build(spec);
    for (auto _ : state) benchmark::DoNotOptimize(allocation::allocate(cluster, pods));
}
BENCHMARK(pack_gang)->Apply(set_iterations);

}  // namespace
