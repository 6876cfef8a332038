// Time of every fragmentation metric on a generated ASI-like cluster: whole, and per changed node when kept up to date.
//
//   bench_fragmentation_metrics [--nodes N] [--seed S] [--runs R] [--smoke]      (defaults: 37707, 0, 21)
//
// One JSON line per metric. `whole_ms` is one evaluation from scratch, tables included; `update_ns` is one
// `Incremental::usage_changed` of a node after a task has left it or come back.
#include <gpusched/core/rng.hpp>
#include <gpusched/fragmentation/fragmentation.hpp>
#include <gpusched/model/cluster.hpp>
#include <gpusched/model/feasibility.hpp>
#include <gpusched/sim/generator.hpp>
#include <gpusched/topology/network_tree.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using namespace gpusched;
using namespace gpusched::fragmentation;

double now_ns() {
    return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

double median(std::vector<double> values) {
    std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                     values.end());
    return values[values.size() / 2];
}

std::size_t sink = 0;  // keeps results alive

template <class F>
double median_ns(int runs, F&& run) {
    std::vector<double> times;
    for (int r = 0; r < runs; ++r) {
        const double start = now_ns();
        sink += run();
        times.push_back(now_ns() - start);
    }
    return median(times);
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
    std::printf("{\"metric\": \"%s\", \"nodes\": %zu, \"whole_ms\": %.3f, \"update_ns\": %.0f}\n", name,
                scene.cluster.node_count(), ms, update_ns(scene, metric));
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
    std::printf(
        "{\"metric\": \"fgd gradient, %s\", \"nodes\": %zu, \"candidates\": %zu, \"per_node_ns\": %.1f}\n",
        name, cluster.node_count(), choices.size(),
        ns / static_cast<double>(std::max<std::size_t>(1, choices.size())));
}

}  // namespace

int main(int argc, char** argv) {
    std::int64_t nodes = 37707;
    std::uint64_t seed = 0;
    int runs = 21;
    for (int i = 1; i < argc; ++i) {
        const std::string_view flag = argv[i];
        if (flag == "--smoke") {
            nodes = 500;
            runs = 1;
        } else if (flag == "--nodes" && i + 1 < argc) {
            nodes = std::atoll(argv[++i]);
        } else if (flag == "--seed" && i + 1 < argc) {
            seed = static_cast<std::uint64_t>(std::atoll(argv[++i]));
        } else if (flag == "--runs" && i + 1 < argc) {
            runs = std::atoi(argv[++i]);
        } else {
            std::fprintf(stderr, "unknown flag, or no value: %s\n", argv[i]);
            return 2;
        }
    }
    const auto spec = sim::generate_cluster({.nodes = nodes, .seed = seed});
    const auto built = Cluster::build(spec);
    Scene scene{built, built, {}, std::max(1, runs)};
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
    std::printf("{\"metric\": \"network tree\", \"nodes\": %zu, \"build_ms\": %.3f}\n", cluster.node_count(),
                tree / 1e6);

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
    std::printf("{\"metric\": \"fgd workload\", \"shapes\": %zu}\n", workload.shapes.size());
    line(
        scene, "fgd", [&] { return static_cast<std::size_t>(fgd(cluster, workload)); }, Fgd(workload, inv));
    const double entropies = median_ns(scene.runs, [&] { return job_entropies(cluster).size(); });
    std::printf("{\"metric\": \"job entropies\", \"nodes\": %zu, \"whole_ms\": %.3f}\n", cluster.node_count(),
                entropies / 1e6);

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
