// SPDX-License-Identifier: Apache-2.0
#include "random_snapshot.hpp"

using namespace gpusched;
using namespace gpusched::fragmentation;
using namespace fragmentation_test;

namespace {

static_assert(NodeMetric<SwitchSlotMetric>);

// Slots of a node as the definition reads, in floating point.
double naive_slots(const NodeSpec& n, const FreeNode& free, const SwitchSlotOptions& o) {
    const double cpus = static_cast<double>(free.cpu_milli) / 1000;
    const double by_cpu = o.cores_per_gpu == 0 ? 1e9 : std::floor(cpus / o.cores_per_gpu);
    if (!o.gpus_per_pod) {
        const double requested = static_cast<double>(n.gpu_count) - free.idle_milli() / 1000.0;
        return std::min(std::max(static_cast<double>(n.gpu_count) - std::floor(requested + 1e-9), 0.0),
                        std::max(by_cpu, 0.0));
    }
    int pods = 0;  // place one pod after the other
    int whole = static_cast<int>(std::count(free.gpu_milli.begin(), free.gpu_milli.end(), 1000));
    auto cpu = free.cpu_milli;
    while (whole >= *o.gpus_per_pod && cpu >= 1000 * o.cores_per_gpu * *o.gpus_per_pod) {
        whole -= *o.gpus_per_pod;
        cpu -= 1000 * o.cores_per_gpu * *o.gpus_per_pod;
        ++pods;
    }
    return pods * *o.gpus_per_pod;
}

}  // namespace

TEST_CASE("slots and jobs by hand") {
    ClusterSpec spec;
    spec.nodes.push_back(node("a", "A", 8, 96, {"c", "s0"}));  // 8 slots
    spec.nodes.push_back(node("b", "A", 8, 95, {"c", "s0"}));  // CPU for 7
    spec.nodes.push_back(node("c", "A", 8, 96, {"c", "s1"}));  // 5.5 GPUs requested: floor 5, 3 slots
    spec.nodes.push_back(node("d", "B", 4, 96, {"c", "s1"}));  // 4 slots
    spec.nodes.push_back(node("e", "A", 8, 96, {"d", "s2"}));  // 8 slots in another cluster
    spec.nodes.push_back(node("f", "A", 8, 96, {}));           // 8 slots nowhere
    spec.nodes.push_back(node("g", "", 0, 96, {"c", "s1"}));
    for (int g = 0; g < 6; ++g)
        spec.tasks.push_back({.name = std::to_string(g),
                              .gpu_count = 1,
                              .gpu_share_milli = g == 5 ? 500 : 1000,
                              .node = "c",
                              .gpus = {g}});
    const auto cluster = Cluster::build(spec);
    using Rows = std::vector<SwitchSlotRow>;
    // A: cluster c has 18, d has 8, f has 8. Switches: s0 15, s1 3, s2 8, f 8. Together s1 has 7 and c 22.
    CHECK(switch_slots(cluster, {.gpus = 8}) ==
          Rows{{"A", 2 + 1 + 1, 1 + 0 + 1 + 1}, {"B", 0, 0}, {"*", 2 + 1 + 1, 1 + 0 + 1 + 1}});
    CHECK(switch_slots(cluster, {.gpus = 7}) ==
          Rows{{"A", 2 + 1 + 1, 2 + 0 + 1 + 1}, {"B", 0, 0}, {"*", 3 + 1 + 1, 2 + 1 + 1 + 1}});
    CHECK(switch_slots(cluster, {.gpus = 4}) ==
          Rows{{"A", 4 + 2 + 2, 3 + 0 + 2 + 2}, {"B", 1, 1}, {"*", 5 + 2 + 2, 3 + 1 + 2 + 2}});
    // At the top level nothing is lost; without CPU node b counts fully.
    for (const auto& row : switch_slots(cluster, {.gpus = 8, .level = 0})) CHECK(row.loss() == 0);
    CHECK(switch_slots(cluster, {.gpus = 16, .cores_per_gpu = 0})[0] == SwitchSlotRow{"A", 1, 1});
    CHECK(switch_slots(cluster, {.gpus = 16})[0] == SwitchSlotRow{"A", 1, 0});
    CHECK(switch_slots(cluster, {.gpus = 16})[0].loss() == 1);
    // At node level every node is a switch of its own.
    CHECK(switch_slots(cluster, {.gpus = 8, .level = node_level})[2] == SwitchSlotRow{"*", 4, 3});
    CHECK(switch_slots(cluster, {.gpus = 4, .max_gpus_per_node = 4}) == Rows{{"B", 1, 1}, {"*", 1, 1}});
}

TEST_CASE("the exact count needs entirely idle GPUs and whole pods on a node") {
    ClusterSpec spec;
    spec.nodes.push_back(node("a", "A", 8, 96, {"c", "s"}));
    spec.tasks.push_back({.name = "t", .gpu_count = 1, .gpu_share_milli = 500, .node = "a", .gpus = {2}});
    spec.tasks.push_back({.name = "u", .cpu_milli = 40000, .gpu_count = 1, .node = "a", .gpus = {3}});
    const auto cluster = Cluster::build(spec);  // 6 idle GPUs and a half, 56 cores
    const auto jobs = [&](int gpus, int cores, std::optional<int> pod) {
        return switch_slots(cluster, {.gpus = gpus, .cores_per_gpu = cores, .gpus_per_pod = pod})[0].within;
    };
    CHECK(jobs(1, 8, {}) == 7);  // the estimate: 8 - floor(1.5) = 7 by GPUs, 7 by CPU
    CHECK(jobs(1, 8, 1) == 6);
    CHECK(jobs(2, 8, 2) == 3);
    CHECK(jobs(4, 8, 4) == 1);   // the other two idle GPUs make no pod of 4
    CHECK(jobs(2, 14, 2) == 2);  // CPU for 4 GPUs
    CHECK(jobs(4, 14, 4) == 1);
    CHECK(jobs(4, 15, 4) == 0);
    CHECK(jobs(8, 1, 8) == 0);
    CHECK(jobs(6, 0, 6) == 1);
}

TEST_CASE("Standby claims, failed GPUs and cordoned nodes offer no slots") {
    ClusterSpec spec;
    spec.nodes.push_back(node("a", "A", 4, 48, {"c", "s"}));
    spec.nodes.back().failed_gpus = {3};
    spec.nodes.push_back(node("b", "A", 4, 48, {"c", "s"}));
    spec.nodes.back().schedulable = false;
    spec.tasks.push_back({.name = "lent",
                          .gpu_count = 1,
                          .priority_class = PriorityClass::hp,
                          .standby = true,
                          .node = "a",
                          .gpus = {0}});
    const auto cluster = Cluster::build(spec);
    CHECK(switch_slots(cluster, {.gpus = 1})[0].within == 2);
    CHECK(switch_slots(cluster, {.gpus = 1, .gpus_per_pod = 1})[0].within == 2);
    CHECK(switch_slots(cluster, {.gpus = 1, .include_cordoned = true})[0].within == 6);
}

TEST_CASE("switch slots agree with their definition on random clusters") {
    std::int64_t losses = 0;
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
        const auto spec = random_snapshot(seed, 40, 40);
        const auto cluster = Cluster::build(spec);
        const auto free = free_nodes(spec);
        SwitchSlotOptions options{.gpus = seed % 3 == 0 ? 4 : 12,
                                  .cores_per_gpu = static_cast<int>(seed % 4)};
        options.include_cordoned = seed % 2 == 0;
        options.level = static_cast<int>(seed % 4) - 1;
        if (seed % 5 < 2) options.gpus_per_pod = seed % 5 == 0 ? 1 : 4;
        if (seed % 7 == 0) options.max_gpus_per_node = 8;
        std::map<std::string, std::map<std::string, double>> across, within;
        std::set<std::string> models{"*"};
        for (std::size_t i = 0; i < spec.nodes.size(); ++i) {
            const auto& n = spec.nodes[i];
            if (n.gpu_count == 0 || n.gpu_count > options.max_gpus_per_node.value_or(64)) continue;
            models.insert(n.gpu_model);
            if (!n.schedulable && !options.include_cordoned) continue;
            const auto depth = static_cast<std::size_t>(*options.level);
            const auto top = n.network.empty() ? "node " + n.name : n.network[0];
            const auto leaf = *options.level == node_level || n.network.size() <= depth ? "node " + n.name
                                                                                        : n.network[depth];
            for (const auto& model : {n.gpu_model, std::string("*")}) {
                across[model][top] += naive_slots(n, free[i], options);
                within[model][leaf] += naive_slots(n, free[i], options);
            }
        }
        const auto rows = switch_slots(cluster, options);
        REQUIRE(rows.size() == models.size());
        REQUIRE(rows.back().gpu_model == "*");
        for (const auto& row : rows) {
            REQUIRE(models.count(row.gpu_model) == 1);
            std::int64_t a = 0, w = 0;
            for (const auto& [domain, slots] : across[row.gpu_model])
                a += static_cast<std::int64_t>(slots) / options.gpus;
            for (const auto& [domain, slots] : within[row.gpu_model])
                w += static_cast<std::int64_t>(slots) / options.gpus;
            REQUIRE(row.across == a);
            REQUIRE(row.within == w);
            REQUIRE(row.loss() >= 0);
            losses += row.loss();
        }
    }
    REQUIRE(losses > 0);
}

TEST_CASE("switch slots refuse options out of range") {
    ClusterSpec spec;
    spec.nodes.push_back(node("a", "A", 8, 96, {"c", "s"}));
    const auto cluster = Cluster::build(spec);
    const auto fails = [&](const SwitchSlotOptions& options, const std::string& text) {
        REQUIRE_THROWS_MESSAGE(switch_slots(cluster, options), InvalidInput, text);
    };
    fails({.gpus = 0}, "gpus: 0; expected 1 100000000");
    fails({.cores_per_gpu = -1}, "cores_per_gpu: -1; expected 0 1000000");
    fails({.level = 2}, "level: 2; expected -1 1");
    fails({.level = -2}, "level: -2; expected -1 1");
    fails({.gpus_per_pod = 0}, "gpus_per_pod: 0; expected 1 64");
    fails({.gpus = 128, .gpus_per_pod = 3}, "gpus_per_pod: 3; expected divisor of gpus, 128");
    fails({.max_gpus_per_node = 65}, "max_gpus_per_node: 65; expected 1 64");
}

TEST_CASE("a constraint that names a level deeper than any node is no reason to look there") {
    ClusterSpec spec;
    spec.nodes.push_back(node("a", "A", 8, 96, {"c"}));
    spec.nodes.push_back(node("b", "A", 8, 96, {"c"}));
    spec.tasks.push_back({.name = "t", .network_affinity = NetworkAffinity{3, NetworkMode::preferred}});
    const auto cluster = Cluster::build(spec);
    REQUIRE(cluster.inventory().named_levels() == 4);
    CHECK(cluster.inventory().network_levels() == 1);
    CHECK(cluster.inventory().deepest_level() == 0);
    CHECK_THROWS_MESSAGE(switch_slots(cluster, {.gpus = 16, .level = 1}), InvalidInput,
                         "level: 1; expected -1 0");
    CHECK(switch_slots(cluster, {.gpus = 16})[0] == SwitchSlotRow{"A", 1, 1});
    CHECK(Cluster().inventory().deepest_level() == node_level);
}
