// SPDX-License-Identifier: Apache-2.0
// Expected fill: the measure by hand, its choices against a plain re-computation, and its limits.
#include "support/specs.hpp"

#include <gpusched/core/rng.hpp>
#include <gpusched/fragmentation/fragmentation.hpp>
#include <gpusched/model/feasibility.hpp>

using namespace gpusched;
using namespace gpusched::fragmentation;
using testing_support::node;
using testing_support::task;

namespace {

constexpr ExpectedFillOptions everything{.coverage_percent = 100, .several_gpus_weight = 1000};

// A shape counts once for each of its GPUs.
double popularity_of(const WorkloadShape& shape) {
    return static_cast<double>(shape.weight * std::max<std::int64_t>(1, shape.gpu_count));
}

// The definition, in floating point and without tables. `free` in thousandths per GPU.
double fill_by_definition(const Workload& workload, double cpu, double memory, const std::vector<int>& free,
                          const ExpectedFillOptions& options) {
    std::map<int, double> popularity;
    double singles = 0, all = 0;
    for (const auto& shape : workload.shapes) {
        all += popularity_of(shape);
        if (shape.gpu_count != 1) continue;
        popularity[static_cast<int>(shape.gpu_share_milli)] += static_cast<double>(shape.weight);
        singles += static_cast<double>(shape.weight);
    }
    const auto random = [&](const auto& self, int left) -> double {
        double fitting = 0, sum = 0;
        for (const auto& [share, weight] : popularity)
            if (share <= left) fitting += weight, sum += weight * (share + self(self, left - share));
        return fitting == 0 ? 0 : sum / fitting;
    };
    double room = 0;
    int idle = 0;
    for (const int left : free) {
        double copies = 0;
        for (const auto& [share, weight] : popularity) copies += weight / singles * (left / share * share);
        room += (random(random, left) + copies) / 2;
        idle += left == 1000 ? 1 : 0;
    }
    double sum = 0;
    for (const auto& shape : workload.shapes) {
        if (shape.gpu_count == 0) continue;
        const auto d = static_cast<double>(shape.gpu_count * shape.gpu_share_milli);
        const auto limit = [&](double have, std::int64_t need) {
            return need == 0 ? 1e9 : d * std::floor(have / static_cast<double>(need));
        };
        const double gpus = shape.gpu_count == 1 ? room : idle / static_cast<int>(shape.gpu_count) * d;
        const double factor = shape.gpu_count == 1 ? 1.0 : options.several_gpus_weight / 1000.0;
        sum += popularity_of(shape) / all * factor *
               std::min({gpus, limit(cpu, shape.cpu_milli), limit(memory, shape.memory_mib)});
    }
    return sum / 1000;
}

}  // namespace

TEST_CASE("expected fill counts how many of each shape the node can hold, not whether one more fits") {
    ClusterSpec spec;
    spec.nodes = {node("rich", 4, 64), node("poor", 4, 24), node("broke", 4, 8)};
    const auto cluster = Cluster::build(spec, IdOrder::as_listed);
    const ExpectedFill measure({{{.cpu_milli = 12'000, .gpu_count = 1}}}, cluster.inventory(), everything);
    CHECK(measure.fill(cluster, make_id<NodeId>(0)) == Catch::Approx(4.0).margin(1e-3));
    CHECK(measure.fill(cluster, make_id<NodeId>(1)) == Catch::Approx(2.0).margin(1e-3));
    CHECK(measure.fill(cluster, make_id<NodeId>(2)) == 0.0);
}

TEST_CASE("the rest of a GPU is worth its expected fill") {
    ClusterSpec spec;
    spec.nodes = {node("n", 1, 64)};
    spec.tasks = {task("t", 1, 400, 0)};
    spec.tasks[0].node = "n";
    spec.tasks[0].gpus = {0};
    const auto cluster = Cluster::build(spec);
    // 600 left; shares 500 (3 of 4) and 200 (1 of 4). Random: 3/4 x 500 + 1/4 x 600 = 525. Copies: 3/4 x 500 + 1/4 x 600.
    const ExpectedFill measure({{{.gpu_count = 1, .gpu_share_milli = 500, .weight = 3},
                                 {.gpu_count = 1, .gpu_share_milli = 200, .weight = 1}}},
                               cluster.inventory(), everything);
    CHECK(measure.fill(cluster, make_id<NodeId>(0)) == Catch::Approx(0.525).margin(1e-3));
}

TEST_CASE("the measure and its choices are those of the definition") {
    Rng rng(21);
    for (int round = 0; round < 60; ++round) {
        Workload workload;
        const auto shapes = rng.between(1, 20);
        for (std::int64_t i = 0; i < shapes; ++i) {
            WorkloadShape shape{.cpu_milli = 500 * rng.between(0, 20),
                                .gpu_count = rng.between(0, 4),
                                .weight = rng.between(1, 9),
                                .memory_mib = 256 * rng.between(0, 20)};
            if (shape.gpu_count == 1 && rng.below(3) > 0) shape.gpu_share_milli = 50 * rng.between(1, 19);
            workload.shapes.push_back(shape);
        }
        workload.shapes.push_back(
            {.cpu_milli = 1000, .gpu_count = 1, .weight = 3});  // whole GPUs are worth something
        ClusterSpec spec;
        spec.nodes = {node("n", rng.between(1, 6), rng.between(4, 60), rng.between(8, 60))};
        spec.tasks = {task("new", 1, 50 * rng.between(1, 19), 1, 1), task("whole", 1, 1000, 2, 1),
                      task("cpu", 0, 1000, 2, 2)};
        for (int g = 0; g < spec.nodes[0].gpu_count; ++g) {
            if (rng.below(2) == 0) continue;
            spec.tasks.push_back(task("r" + std::to_string(g), 1, 50 * rng.between(1, 20), 0));
            spec.tasks.back().node = "n";
            spec.tasks.back().gpus = {g};
        }
        auto cluster = Cluster::build(spec);
        const auto n = make_id<NodeId>(0);
        const ExpectedFill measure(workload, cluster.inventory(), everything);
        const auto expected = [&] {
            std::vector<int> free;
            for (int g = 0; g < cluster.gpu_count(n); ++g) free.push_back(cluster.gpu_free_milli(n, g));
            return fill_by_definition(workload, static_cast<double>(cluster.cpu_free_milli(n)),
                                      static_cast<double>(cluster.memory_free_mib(n)), free, everything);
        };
        // Popularities are rounded down to 1/32768, values to half a thousandth of a GPU per card.
        const double tolerance = 0.01;
        const double before = expected();
        REQUIRE(measure.fill(cluster, n) == Catch::Approx(before).margin(tolerance));
        for (const char* name : {"new", "whole", "cpu"}) {
            const auto t = cluster.find_task(name);
            if (find_obstacle(cluster, t, n) != Obstacle::none) continue;
            const auto choice = measure.best(cluster, t, n, candidate_gpus(cluster, t, n));
            std::map<GpuMask, double> after;
            const auto candidates = candidate_gpus(cluster, t, n);
            const auto try_gpus = [&](GpuMask gpus) {
                const auto here = cluster.checkpoint();
                cluster.assign(t, n, gpus);
                after[gpus] = expected();
                cluster.rollback(here);
            };
            if (cluster.inventory().tasks.gpu_count[index(t)] == 0)
                try_gpus(0);
            else
                for_each_gpu(candidates, [&](int g) { try_gpus(gpu_bit(g)); });
            REQUIRE(after.contains(choice.gpus));
            for (const auto& [gpus, value] : after) REQUIRE(after[choice.gpus] >= value - tolerance);
            const double gain =
                after[choice.gpus] - before + static_cast<double>(cluster.gpu_milli(t)) / 1000;
            REQUIRE(static_cast<double>(choice.score) ==
                    Catch::Approx(gain / 0.05).margin(0.5 + tolerance / 0.05));
        }
    }
}

TEST_CASE("expected fill is the average fill by simulated tasks") {
    // Tasks are put on the node itself until none fits: copies of one shape, and for shapes of one GPU at most also random shapes, whose
    // cores and memory are set aside, GPU by GPU.
    Rng rng(77);
    for (int round = 0; round < 12; ++round) {
        INFO("round " << round);
        constexpr std::array<std::int64_t, 6> shares{150, 200, 350, 500, 700, 1000};
        Workload workload;
        for (int i = 0; i < 5; ++i) {
            WorkloadShape shape{.cpu_milli = 1000 * rng.between(1, 8),
                                .gpu_count = rng.between(1, 3),
                                .weight = rng.between(1, 9)};
            if (shape.gpu_count == 1) shape.gpu_share_milli = rng.pick(std::span(shares));
            workload.shapes.push_back(shape);
        }
        workload.shapes.push_back({.cpu_milli = 1000, .gpu_count = 1, .gpu_share_milli = 250, .weight = 2});
        ClusterSpec spec;
        spec.nodes = {node("n", rng.between(2, 4), rng.between(6, 40))};
        for (int g = 0; g < spec.nodes[0].gpu_count; ++g) {
            if (rng.below(2) == 0) continue;
            spec.tasks.push_back(task("r" + std::to_string(g), 1, 50 * rng.between(1, 12), 0));
            spec.tasks.back().node = "n";
            spec.tasks.back().gpus = {g};
        }
        const auto running = spec.tasks.size();
        // 40 pending copies of every shape, as they are and without cores.
        constexpr std::size_t copies = 40;
        for (const bool cores : {true, false})
            for (std::size_t m = 0; m < workload.shapes.size(); ++m)
                for (std::size_t k = 0; k < copies; ++k) {
                    const auto& shape = workload.shapes[m];
                    auto t = task((cores ? "c" : "f") + std::to_string(m) + "-" + std::to_string(k),
                                  shape.gpu_count, shape.gpu_share_milli, 0);
                    if (cores) t.cpu_milli = shape.cpu_milli;
                    spec.tasks.push_back(t);
                }
        auto cluster = Cluster::build(spec);
        const auto n = make_id<NodeId>(0);
        const auto copy = [&](bool cores, std::size_t m, std::size_t k) {
            return make_id<TaskId>(running + ((cores ? 0 : workload.shapes.size()) + m) * copies + k);
        };
        const auto shape_gpus = [&](std::size_t m) {
            return static_cast<double>(workload.shapes[m].gpu_count * workload.shapes[m].gpu_share_milli) /
                   1000;
        };
        // How many tasks of a shape its cores alone allow.
        const auto by_cores = [&](std::size_t m) {
            return static_cast<double>(cluster.cpu_free_milli(n) / workload.shapes[m].cpu_milli) *
                   shape_gpus(m);
        };
        std::vector<std::size_t> singles;
        double single_weight = 0, all = 0;
        for (std::size_t m = 0; m < workload.shapes.size(); ++m) {
            all += popularity_of(workload.shapes[m]);
            if (workload.shapes[m].gpu_count > 1) continue;
            singles.push_back(m);
            single_weight += static_cast<double>(workload.shapes[m].weight);
        }
        // Puts copies of a shape on one GPU (or on any, for shapes of several) until none fits.
        const auto fill_with = [&](std::size_t m, int gpu) {
            const auto start = cluster.checkpoint();
            double filled = 0;
            for (std::size_t k = 0; k < copies; ++k) {
                const auto t = copy(false, m, k);
                auto open = candidate_gpus(cluster, t, n);
                if (gpu >= 0) open &= gpu_bit(gpu);
                if (gpu_count(open) < workload.shapes[m].gpu_count) break;
                cluster.assign(t, n, lowest_gpus(open, workload.shapes[m].gpu_count));
                filled += shape_gpus(m);
            }
            cluster.rollback(start);
            return filled;
        };
        double room = 0, deviation = 0;
        for (int g = 0; g < cluster.gpu_count(n); ++g) {
            for (const auto m : singles)
                room += static_cast<double>(workload.shapes[m].weight) / single_weight * fill_with(m, g) / 2;
            constexpr int draws = 4000;
            double sum = 0, squares = 0;
            for (int draw = 0; draw < draws; ++draw) {
                const auto start = cluster.checkpoint();
                double filled = 0;
                std::vector<std::size_t> used(workload.shapes.size());
                for (;;) {
                    // A random shape of those that still fit.
                    std::int64_t weight = 0;
                    for (const auto m : singles)
                        if ((candidate_gpus(cluster, copy(false, m, used[m]), n) & gpu_bit(g)) != 0)
                            weight += workload.shapes[m].weight;
                    if (weight == 0) break;
                    auto ticket = rng.between(0, weight - 1);
                    for (const auto m : singles) {
                        if ((candidate_gpus(cluster, copy(false, m, used[m]), n) & gpu_bit(g)) == 0) continue;
                        ticket -= workload.shapes[m].weight;
                        if (ticket >= 0) continue;
                        cluster.assign(copy(false, m, used[m]++), n, gpu_bit(g));
                        filled += shape_gpus(m);
                        break;
                    }
                }
                cluster.rollback(start);
                sum += filled;
                squares += filled * filled;
            }
            room += sum / draws / 2;
            deviation += std::sqrt(std::max(0.0, squares / draws - sum / draws * (sum / draws)) / draws) / 2;
        }
        double expected = 0;
        for (std::size_t m = 0; m < workload.shapes.size(); ++m)
            expected += popularity_of(workload.shapes[m]) / all *
                        std::min(workload.shapes[m].gpu_count == 1 ? room : fill_with(m, -1), by_cores(m));
        const ExpectedFill measure(workload, cluster.inventory(), everything);
        REQUIRE(measure.fill(cluster, n) == Catch::Approx(expected).margin(0.01 + 5 * deviation));
    }
}

TEST_CASE("shapes that a node's model cannot take count for nothing there") {
    ClusterSpec spec;
    spec.nodes = {node("m", 2, 64), node("other", 2, 64)};
    spec.nodes[1].gpu_model = "N";
    const auto cluster = Cluster::build(spec);
    const ExpectedFill measure({{{.cpu_milli = 1000, .gpu_count = 1, .gpu_models = {"N"}, .weight = 1},
                                 {.cpu_milli = 1000, .gpu_count = 2, .weight = 3}}},
                               cluster.inventory(), everything);
    CHECK(measure.fill(cluster, make_id<NodeId>(0)) == Catch::Approx(2 * 6.0 / 7).margin(1e-3));
    CHECK(measure.fill(cluster, make_id<NodeId>(1)) == Catch::Approx(2.0).margin(1e-3));
}

TEST_CASE("expected fill names values out of range") {
    const auto cluster = Cluster::build({});
    const Workload one{{{.gpu_count = 1}}};
    const auto make = [&](const Workload& w, ExpectedFillOptions o) {
        return ExpectedFill(w, cluster.inventory(), o);
    };
    REQUIRE_THROWS_MESSAGE(make(one, {.coverage_percent = 0}), InvalidInput,
                           "coverage_percent: 0; expected 1 100");
    REQUIRE_THROWS_MESSAGE(make(one, {.grain_milli = 0}), InvalidInput, "grain_milli: 0; expected 1 1000");
    REQUIRE_THROWS_MESSAGE(make(one, {.several_gpus_weight = 1001}), InvalidInput,
                           "several_gpus_weight: 1001; expected 0 1000");
    REQUIRE_THROWS_MESSAGE(make({}, {}), InvalidInput, "workload has no shapes");
    REQUIRE_THROWS_MESSAGE(make({{{.gpu_count = 1, .memory_mib = -1}}}, {}), InvalidInput,
                           "workload shape 0: memory_mib: -1; expected 0");
    REQUIRE_NOTHROW(make({{{.cpu_milli = 5}}}, {}));  // nothing asks for a GPU: all nodes are worth nothing
}
