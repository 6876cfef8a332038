// SPDX-License-Identifier: Apache-2.0
// Measures every fragmentation metric on a generated ASI-like cluster: from scratch, and updated per changed
// node.
//
// Prints one JSON line per metric. `whole_ms` is one evaluation from scratch, tables included. `update_ns` is
// one `Incremental::usage_changed` of a node after a task has left it or returned.
#include "../support/command_line.hpp"
#include "../support/rows.hpp"
#include "../support/timing.hpp"

#include <gpusched/core/rng.hpp>
#include <gpusched/fragmentation/fragmentation.hpp>
#include <gpusched/model/cluster.hpp>
#include <gpusched/model/feasibility.hpp>
#include <gpusched/sim/generator.hpp>
#include <gpusched/topology/network_tree.hpp>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace gpusched;
using namespace gpusched::fragmentation;

std::size_t sink = 0;  // keeps results alive

template <class F>
double median_ns(int runs, F&& run) {
    std::vector<double> times;
    for (int r = 0; r < runs; ++r) times.push_back(1e9 * bench::seconds([&] { sink += run(); }));
    return bench::median(std::move(times));
}

struct Scene {
    Cluster cluster;
    Cluster changed;              // a movable task has left each of `nodes`
    std::vector<NodeId> nodes{};  // in random order
    int runs;
};

// Follows the cluster to the changed one and back.
template <class M>
double update_ns(const Scene& scene, const M& metric) {
    Incremental running(metric, scene.cluster);
    const double ns = median_ns(scene.runs, [&] {
        std::size_t moved = 0;
        for (const auto node : scene.nodes) moved += running.usage_changed(scene.changed, node);
        for (const auto node : scene.nodes) moved += running.usage_changed(scene.cluster, node);
        return moved;
    });
    return ns / (2 * static_cast<double>(scene.nodes.size()));
}

template <class Whole, class M>
void line(const Scene& scene, const char* name, Whole&& whole, const M& metric) {
    const double ms = median_ns(scene.runs, whole) / 1e6;
    bench::print({{"metric", name},
                  {"nodes", scene.cluster.node_count()},
                  {"whole_ms", bench::rounded(ms, 3)},
                  {"update_ns", bench::rounded(update_ns(scene, metric), 0)}});
}

// One placement's best GPUs by gradient, on every node that can take the task.
void gradient_line(const Scene& scene, const char* name, const Fgd& metric, TaskId task) {
    const auto& cluster = scene.cluster;
    std::vector<std::pair<NodeId, GpuMask>> choices;
    const auto home = cluster.node_of(task);
    for (const auto node : cluster.nodes())
        if (node != home && find_obstacle(cluster, task, node) == Obstacle::none)
            choices.emplace_back(node, candidate_gpus(cluster, task, node));
    const double ns = median_ns(scene.runs, [&] {
        std::int64_t best = INT64_MAX;
        for (const auto& [node, candidates] : choices)
            best = std::min(best, metric.best(cluster, task, node, candidates).delta);
        return static_cast<std::size_t>(best);
    });
    bench::print({{"metric", std::string("fgd gradient, ") + name},
                  {"nodes", cluster.node_count()},
                  {"candidates", choices.size()},
                  {"per_node_ns",
                   bench::rounded(ns / static_cast<double>(std::max<std::size_t>(1, choices.size())), 1)}});
}

}  // namespace

int main(int argc, char** argv) {
    bench::CommandLine options("Time of every fragmentation metric, whole and per changed node.", argc, argv);
    std::int64_t nodes = options.smoke() ? 500 : 37'707;
    std::uint64_t seed = 0;
    int runs = options.smoke() ? 1 : 21;
    options.option("--nodes", nodes, "nodes of the cluster")->check(bench::at_least(1));
    options.option("--seed", seed, "seed of the cluster");
    options.option("--runs", runs, "runs, the median of which counts")->check(bench::at_least(1));
    options.read();
    const auto spec = sim::generate_cluster({.nodes = nodes, .seed = seed});
    const auto built = Cluster::build(spec);
    Scene scene{built, built, {}, runs};
    auto& cluster = scene.cluster;
    const auto& inv = cluster.inventory();
    for (const auto node : cluster.nodes())
        for (const auto task : cluster.tasks_on(node)) {
            if (!cluster.is_movable(task)) continue;
            scene.changed.remove(task);
            scene.nodes.push_back(node);
            break;
        }
    Rng rng(seed);
    rng.shuffle(std::span(scene.nodes));
    const auto workload = typical_workload(spec.tasks);

    const double tree = median_ns(scene.runs, [&] { return topology::NetworkTree(inv).vertex_count(); });
    bench::print({{"metric", "network tree"},
                  {"nodes", cluster.node_count()},
                  {"build_ms", bench::rounded(tree / 1e6, 3)}});

    const ReportOptions by_model{.max_gpus_per_node = 8, .by = GroupBy::gpu_model};
    line(
        scene, "report, 8 shapes", [&] { return report(cluster, asi_shapes).size(); },
        ReportMetric(inv, asi_shapes));
    line(
        scene, "report, 8 shapes by model", [&] { return report(cluster, asi_shapes, by_model).size(); },
        ReportMetric(inv, asi_shapes, by_model));
    line(
        scene, "switch slots", [&] { return switch_slots(cluster).size(); }, SwitchSlotMetric(inv));
    line(
        scene, "switch slots, exact", [&] { return switch_slots(cluster, {.gpus_per_pod = 8}).size(); },
        SwitchSlotMetric(inv, {.gpus_per_pod = 8}));
    line(
        scene, "largest job", [&] { return largest_job(cluster).size(); }, LargestJobMetric(inv));
    line(
        scene, "allocation ratio",
        [&] { return static_cast<std::size_t>(allocation_ratio(cluster).held_milli); },
        AllocationRatioMetric{});
    line(
        scene, "occupancy", [&] { return static_cast<std::size_t>(occupancy(cluster).empty); },
        OccupancyMetric{});
    line(
        scene, "fragment rate",
        [&] { return static_cast<std::size_t>(fragment_rate(cluster).unusable_milli); },
        FragmentRateMetric{});
    bench::print({{"metric", "fgd workload"}, {"shapes", workload.shapes.size()}});
    line(
        scene, "fgd", [&] { return static_cast<std::size_t>(fgd(cluster, workload)); }, Fgd(workload, inv));
    const double entropies = median_ns(scene.runs, [&] { return job_entropies(cluster).size(); });
    bench::print({{"metric", "job entropies"},
                  {"nodes", cluster.node_count()},
                  {"whole_ms", bench::rounded(entropies / 1e6, 3)}});

    const Fgd metric(workload, inv);
    const auto pending_like = [&](bool fraction) {
        for (const auto node : scene.nodes)
            for (const auto task : cluster.tasks_on(node))
                if (cluster.is_fraction(task) == fraction && inv.tasks.gpu_count[index(task)] == 1)
                    return task;
        return none<TaskId>;
    };
    if (const auto task = pending_like(true); task != none<TaskId>)
        gradient_line(scene, "fraction", metric, task);
    if (const auto task = pending_like(false); task != none<TaskId>)
        gradient_line(scene, "one GPU", metric, task);
    return sink == 0;
}
