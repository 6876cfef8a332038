// SPDX-License-Identifier: Apache-2.0
#include "random_snapshot.hpp"

using namespace gpusched;
using namespace gpusched::fragmentation;
using namespace fragmentation_test;

namespace {

static_assert(NodeMetric<Fgd>);

// FGD as its definition reads, shape by shape, in the evaluator's unit.
FgdClasses<std::int64_t> naive_classes(const Workload& workload, const std::string& model,
                                       const FreeNode& free) {
    FgdClasses<std::int64_t> out;
    const std::int64_t idle = free.idle_milli();
    for (const auto& m : workload.shapes) {
        const bool cpu = free.cpu_milli >= m.cpu_milli;
        if (m.gpu_count == 0) {
            (cpu ? out.cpu_only_satisfied : out.cpu_only_lack_cpu) += m.weight * idle;
            continue;
        }
        if (!m.gpu_models.empty() &&
            std::find(m.gpu_models.begin(), m.gpu_models.end(), model) == m.gpu_models.end()) {
            out.no_access += m.weight * idle;
            continue;
        }
        int enough = 0;
        std::int64_t residue = 0;
        for (const int milli : free.gpu_milli) {
            if (milli >= m.gpu_share_milli)
                ++enough;
            else
                residue += milli;
        }
        const bool gpu = enough >= m.gpu_count;
        if (gpu && cpu) {
            out.lack_gpu += m.weight * residue;
            out.satisfied += m.weight * (idle - residue);
        } else {
            (gpu ? out.lack_cpu : cpu ? out.lack_gpu : out.lack_both) += m.weight * idle;
        }
    }
    return out;
}

std::int64_t fragmentation_of(const FgdClasses<std::int64_t>& c) {
    return c.lack_gpu + c.lack_cpu + c.lack_both + c.no_access + c.cpu_only_satisfied + c.cpu_only_lack_cpu;
}

// One node of 4 GPUs and 10 cores; a task leaves .4 of GPU 0 and another all but .3 of GPU 1, two GPUs are idle.
ClusterSpec hand_made() {
    ClusterSpec spec;
    spec.nodes.push_back({.name = "n", .gpu_model = "A", .gpu_count = 4, .cpu_milli = 10000});
    spec.tasks.push_back(
        {.name = "a", .cpu_milli = 1000, .gpu_count = 1, .gpu_share_milli = 600, .node = "n", .gpus = {0}});
    spec.tasks.push_back(
        {.name = "b", .cpu_milli = 1000, .gpu_count = 1, .gpu_share_milli = 300, .node = "n", .gpus = {1}});
    spec.tasks.push_back({.name = "half", .cpu_milli = 2000, .gpu_count = 1, .gpu_share_milli = 500});
    spec.tasks.push_back({.name = "two", .cpu_milli = 7500, .gpu_count = 2});
    return spec;
}

}  // namespace

TEST_CASE("expected fragmentation by hand") {
    const auto cluster = Cluster::build(hand_made());
    // idle = .4 + .7 + 1 + 1 = 3.1, 8 cores
    const auto one = [&](WorkloadShape shape) { return fgd(cluster, {{shape}}); };
    CHECK(one({1000, 1, 500, {}}) == Catch::Approx(0.4));  // only GPU 0 is too small
    CHECK(one({1000, 1, 400, {}}) == Catch::Approx(0.0));  // .4 is just enough
    CHECK(one({1000, 1, 1000, {}}) == Catch::Approx(1.1));
    CHECK(one({8000, 2, 1000, {}}) == Catch::Approx(1.1));
    CHECK(one({8001, 2, 1000, {}}) == Catch::Approx(3.1));    // CPU is short
    CHECK(one({1000, 3, 1000, {}}) == Catch::Approx(3.1));    // GPUs are short
    CHECK(one({1000, 1, 500, {"B"}}) == Catch::Approx(3.1));  // another model
    CHECK(one({1000, 1, 500, {"B", "A"}}) == Catch::Approx(0.4));
    CHECK(one({1000, 0, 1000, {}}) == Catch::Approx(3.1));  // asks for no GPU
    CHECK(fgd(cluster, {{{1000, 1, 500, {}, 3}, {9000, 0, 1000, {}, 1}}}) ==
          Catch::Approx((3 * 0.4 + 3.1) / 4));
}

TEST_CASE("workloads name GPU models as people write them") {
    auto spec = hand_made();
    spec.nodes[0].gpu_model = "NVIDIA-A100-80GB";
    spec.nodes.push_back({.name = "m", .gpu_model = "NVIDIA-H100-40GB"});
    spec.nodes.push_back({.name = "o", .gpu_model = "NVIDIA-H100-80GB"});
    for (std::size_t n = 1; n < 3; ++n) spec.nodes[n].gpu_count = 1;
    const auto cluster = Cluster::build(spec);
    const auto one = [&](const std::string& model) { return fgd(cluster, {{{1000, 1, 500, {model}}}}); };
    CHECK(one("a100") == one("NVIDIA-A100-80GB"));
    CHECK(one("a100") < one("A10"));
    CHECK(one("h100 40gb") == one("NVIDIA-H100-40GB"));
    REQUIRE_THROWS_MESSAGE(one("h100"), InvalidInput,
                           "gpu_models: 'h100'; one GPU model: 'NVIDIA-H100-40GB' 'NVIDIA-H100-80GB'");
}

TEST_CASE("the seven classes by hand") {
    const auto cluster = Cluster::build(hand_made());
    const Workload workload{{{1000, 1, 500, {}, 1},      // runs; .4 too small
                             {8001, 2, 1000, {}, 2},     // lacks CPU
                             {1000, 3, 1000, {}, 3},     // lacks GPU
                             {9000, 4, 1000, {}, 4},     // lacks both
                             {1000, 1, 1000, {"B"}, 5},  // no access
                             {8000, 0, 1000, {}, 6},     // CPU only, satisfied
                             {8001, 0, 1000, {}, 7}}};   // CPU only, lacks CPU
    const auto c = fgd_breakdown(cluster, workload);
    CHECK(c.satisfied == Catch::Approx(2.7 * 1 / 28));
    CHECK(c.lack_gpu == Catch::Approx((0.4 * 1 + 3.1 * 3) / 28));
    CHECK(c.lack_cpu == Catch::Approx(3.1 * 2 / 28));
    CHECK(c.lack_both == Catch::Approx(3.1 * 4 / 28));
    CHECK(c.no_access == Catch::Approx(3.1 * 5 / 28));
    CHECK(c.cpu_only_satisfied == Catch::Approx(3.1 * 6 / 28));
    CHECK(c.cpu_only_lack_cpu == Catch::Approx(3.1 * 7 / 28));
    CHECK(fgd(cluster, workload) == Catch::Approx(3.1 - c.satisfied));
}

TEST_CASE("the gradient by hand") {
    const auto cluster = Cluster::build(hand_made());
    const auto node = cluster.find_node("n");
    const auto half = cluster.find_task("half");
    // 500 thousandths are asked for half of the time, a whole GPU the other half, with little CPU.
    const Fgd metric({{{1000, 1, 500, {}, 1}, {1000, 1, 1000, {}, 1}}}, cluster.inventory());
    // Before: (.4 + 1.1) / 2 = .75. On GPU 1: (.4 + .2, .4 + .2) -> .6. On GPU 2: .4 and .4 + .7 + .5 -> 1.0.
    CHECK(metric.to_gpus(metric.state(cluster, node)) == Catch::Approx(0.75));
    CHECK(metric.to_gpus(metric.delta(cluster, half, node, gpu_bit(1))) == Catch::Approx(-0.15));
    CHECK(metric.to_gpus(metric.delta(cluster, half, node, gpu_bit(2))) == Catch::Approx(0.25));
    const auto best = metric.best(cluster, half, node, candidate_gpus(cluster, half, node));
    CHECK(best == FgdChoice{gpu_bit(1), metric.delta(cluster, half, node, gpu_bit(1))});
    // Two whole GPUs and 7.5 of 8 cores: .4 and .7 stay and nothing can use them.
    const auto two = cluster.find_task("two");
    CHECK(metric.to_gpus(metric.delta(cluster, two, node, 0b1100)) == Catch::Approx(1.1 - 0.75));
    CHECK(metric.best(cluster, two, node, 0b1100).gpus == 0b1100);
}

TEST_CASE("failed GPUs, cordoned nodes and Standby claims are not idle") {
    ClusterSpec spec;
    spec.nodes.push_back(
        {.name = "n", .gpu_model = "A", .gpu_count = 4, .cpu_milli = 8000, .failed_gpus = {3}});
    spec.nodes.push_back(
        {.name = "cordoned", .gpu_model = "A", .gpu_count = 2, .cpu_milli = 8000, .schedulable = false});
    spec.tasks.push_back({.name = "lent",
                          .cpu_milli = 4000,
                          .gpu_count = 1,
                          .priority_class = PriorityClass::hp,
                          .standby = true,
                          .node = "n",
                          .gpus = {0}});
    spec.tasks.push_back(
        {.name = "spot", .cpu_milli = 4000, .gpu_count = 1, .priority_class = PriorityClass::lp});
    auto cluster = Cluster::build(spec);
    const Workload nothing_fits{{{1000, 16, 1000, {}}}};
    CHECK(fgd(cluster, nothing_fits) == Catch::Approx(2.0));
    CHECK(fgd(cluster, nothing_fits, {.include_cordoned = true}) == Catch::Approx(4.0));
    // A spot task on the lent GPU and CPU takes nothing that others could have: the measure does not move.
    const Fgd metric({{{4000, 1, 1000, {}}}}, cluster.inventory());
    const auto spot = cluster.find_task("spot");
    const auto node = cluster.find_node("n");
    const auto before = metric.state(cluster, node);
    CHECK(metric.delta(cluster, spot, node, gpu_bit(0)) == 0);
    cluster.assign(spot, node, gpu_bit(0));
    CHECK(metric.state(cluster, node) == before);
}

TEST_CASE("nodes without a GPU model serve shapes that accept any") {
    ClusterSpec spec;
    spec.nodes.push_back({.name = "n", .gpu_count = 1, .cpu_milli = 1000});
    const auto cluster = Cluster::build(spec);
    CHECK(fgd(cluster, {{{0, 1, 1000, {}}}}) == 0.0);
    CHECK(fgd(cluster, {{{0, 1, 1000, {"A"}}}}) == Catch::Approx(1.0));
    CHECK(fgd(cluster, {{{0, 1, 1000, {"A"}}}}) == fgd_breakdown(cluster, {{{0, 1, 1000, {"A"}}}}).no_access);
}

TEST_CASE("expected fragmentation agrees with its definition on random clusters") {
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
        const auto spec = random_snapshot(seed);
        const auto cluster = Cluster::build(spec);
        const auto free = free_nodes(spec);
        const auto workload = typical_workload(spec.tasks, {.include_cpu_only = seed % 3 != 0});
        const FgdOptions options{.include_cordoned = seed % 2 == 0};
        const Fgd metric(workload, cluster.inventory(), options);
        std::int64_t sum = 0;
        for (const auto node : cluster.nodes()) {
            const auto& n = spec.nodes[index(node)];
            const auto expected = n.schedulable || options.include_cordoned
                                      ? naive_classes(workload, n.gpu_model, free[index(node)])
                                      : FgdClasses<std::int64_t>{};
            REQUIRE(metric.classes(cluster, node) == expected);
            REQUIRE(metric.state(cluster, node) == fragmentation_of(expected));
            sum += fragmentation_of(expected);
        }
        REQUIRE(fgd(cluster, workload, options) == metric.to_gpus(sum));
        REQUIRE(sum > 0);
    }
}

TEST_CASE("the gradient is the difference that the placement makes") {
    int fractions = 0, borrowed = 0;
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
        const auto spec = random_snapshot(seed);
        auto cluster = Cluster::build(spec);
        const Fgd metric(typical_workload(spec.tasks), cluster.inventory());
        for (const auto task : cluster.tasks()) {
            if (cluster.is_placed(task)) {
                if (!cluster.is_movable(task)) continue;
                cluster.remove(task);
            }
            for (const auto node : cluster.nodes()) {
                if (find_obstacle(cluster, task, node) != Obstacle::none) continue;
                const auto candidates = candidate_gpus(cluster, task, node);
                const auto best = metric.best(cluster, task, node, candidates);
                const auto difference = [&](GpuMask gpus) {
                    const auto before = metric.state(cluster, node);
                    cluster.assign(task, node, gpus);
                    const auto after = metric.state(cluster, node);
                    cluster.undo();
                    return after - before;
                };
                REQUIRE(best.delta == difference(best.gpus));
                REQUIRE(best.delta == metric.delta(cluster, task, node, best.gpus));
                if (!cluster.is_fraction(task)) continue;
                ++fractions;
                for_each_gpu(candidates, [&](int g) {
                    const auto here = difference(gpu_bit(g));
                    REQUIRE(metric.delta(cluster, task, node, gpu_bit(g)) == here);
                    REQUIRE((here > best.delta || (here == best.delta && gpu_bit(g) >= best.gpus)));
                    if (cluster.gpu_free_milli(node, g) < cluster.gpu_free_milli(node, g, Lent::yes))
                        ++borrowed;
                });
            }
        }
    }
    REQUIRE(fractions > 1000);
    REQUIRE(borrowed > 10);
}

TEST_CASE("workloads out of range are refused") {
    const auto cluster = Cluster::build(hand_made());
    const auto fails = [&](Workload workload, const std::string& text) {
        REQUIRE_THROWS_MESSAGE(fgd(cluster, workload), InvalidInput, text);
    };
    fails({}, "workload has no shapes");
    fails({{{-1, 1}}}, "shape 0: cpu_milli: -1; expected 0 1000000000000");
    fails({{{0, 1}, {0, 65}}}, "shape 1: gpu_count: 65; expected 0 64");
    fails({{{0, 1, 0, {}}}}, "shape 0: gpu_share_milli: 0; expected 1 1000");
    fails({{{0, 2, 500, {}}}}, "shape 0: gpu_share_milli 500 gpu_count 2; share goes gpu_count 1");
    fails({{{0, 1, 1000, {}, 0}}}, "shape 0: weight: 0; expected 1 100000000");
    fails({{{0, 1, 1000, {}, 100'000'000}, {0, 1, 1000, {}, 1}}},
          "sum of workload weights: 100000001; expected 100000000");
}
