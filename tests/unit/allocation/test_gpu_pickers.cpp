// SPDX-License-Identifier: Apache-2.0
// GPU pickers: which GPUs of a node, by hand and against the rules of the model.
#include "support/catch.hpp"

#include <gpusched/allocation/allocation.hpp>

using namespace gpusched;
using namespace gpusched::allocation;

namespace gpu_pickers_tests {

TaskSpec task(std::string name, std::int64_t gpus, std::int64_t share = 1000, std::vector<int> held = {}) {
    TaskSpec t{.name = std::move(name), .gpu_count = gpus, .gpu_share_milli = share};
    if (!held.empty()) t.node = "n";
    t.gpus = std::move(held);
    return t;
}

Cluster one_node(const char* hardware, std::vector<TaskSpec> tasks) {
    ClusterSpec spec;
    NodeSpec n;
    n.name = "n";
    n.gpu_model = "M";
    n.gpu_count = 8;
    n.cpu_milli = 64'000;
    n.memory_mib = 1024;
    if (hardware != nullptr) n.hardware = Hardware{hardware, {}};
    spec.nodes = {n};
    spec.tasks = std::move(tasks);
    return Cluster::build(spec);
}

template <class P>
GpuMask pick(const P& picker, const Cluster& cluster, const char* task) {
    return picker(cluster, cluster.find_task(task), make_id<NodeId>(0));
}

TEST_CASE("a fraction goes to the tightest GPU, the lowest among equals") {
    const auto cluster =
        one_node(nullptr, {task("x", 1, 300, {2}), task("y", 1, 600, {4}), task("z", 1, 600, {5}),
                           task("new", 1, 400), task("large", 1, 800)});
    CHECK(pick(TightestGpu{}, cluster, "new") == gpu_bit(4));
    CHECK(pick(TightestGpu{}, cluster, "large") == gpu_bit(0));
    CHECK(pick(FewestCrossings{}, cluster, "new") == gpu_bit(4));
    CHECK(pick(LeastHarm{}, cluster, "new") == gpu_bit(4));
}

TEST_CASE("whole GPUs stay on one socket, the one that keeps the larger blocks") {
    // rtx4090x8: GPUs 0-3 and 4-7 are the sockets, every GPU is a NUMA node of its own. Idle: 1 2 3 and 5 6.
    const std::vector<TaskSpec> running{task("a", 1, 1000, {0}), task("b", 2, 1000, {4, 7})};
    auto tasks = running;
    tasks.push_back(task("two", 2));
    tasks.push_back(task("three", 3));
    tasks.push_back(task("four", 4));
    const auto cluster = one_node("rtx4090x8", tasks);
    CHECK(pick(FewestCrossings{}, cluster, "two") == (gpu_bit(5) | gpu_bit(6)));
    CHECK(pick(FewestCrossings{}, cluster, "three") == (gpu_bit(1) | gpu_bit(2) | gpu_bit(3)));
    // Four must cross. Taking all of 1 2 3 and one of 5 6 leaves 1; two and two leave 1 as well: the lowest set wins.
    CHECK(gpu_count(pick(FewestCrossings{}, cluster, "four")) == 4);
    CHECK(pick(TightestGpu{}, cluster, "two") == (gpu_bit(1) | gpu_bit(2)));
}

TEST_CASE("least harm leaves blocks whole even if the task has to cross sockets") {
    // a100x8: NUMA node = socket = four GPUs. Idle: 3 and 4 5 6 7.
    const auto cluster = one_node("a100x8", {task("a", 3, 1000, {0, 1, 2}), task("two", 2), task("one", 1)});
    CHECK(pick(FewestCrossings{}, cluster, "one") == gpu_bit(3));
    CHECK(pick(LeastHarm{}, cluster, "one") == gpu_bit(3));
    // Two within a socket leave 1 + 2 idle (squares 1 + 4), one of each leaves 0 + 3 (9).
    CHECK(pick(FewestCrossings{}, cluster, "two") == (gpu_bit(4) | gpu_bit(5)));
    CHECK(pick(LeastHarm{}, cluster, "two") == (gpu_bit(3) | gpu_bit(4)));
}

TEST_CASE("guaranteed localities bind every picker") {
    auto two = task("two", 2);
    two.hardware_affinity = {{HardwareLevel::socket, HardwareQos::guaranteed}};
    // Idle: 3 4 5: only 4 and 5 share a socket.
    const auto cluster = one_node("a100x8", {task("a", 3, 1000, {0, 1, 2}), task("b", 2, 1000, {6, 7}), two});
    const GpuMask expected = gpu_bit(4) | gpu_bit(5);
    CHECK(pick(TightestGpu{}, cluster, "two") == expected);
    CHECK(pick(FewestCrossings{}, cluster, "two") == expected);
    CHECK(pick(LeastHarm{}, cluster, "two") == expected);
    Rng rng(1);
    CHECK(RandomGpus{}(cluster, cluster.find_task("two"), make_id<NodeId>(0), rng) == expected);
}

TEST_CASE("random GPUs are all sets alike") {
    const auto cluster = one_node(nullptr, {task("a", 4, 1000, {0, 2, 4, 6}), task("two", 2)});
    Rng rng(7);
    std::map<GpuMask, int> seen;
    for (int i = 0; i < 6000; ++i) {
        const auto gpus = RandomGpus{}(cluster, cluster.find_task("two"), make_id<NodeId>(0), rng);
        REQUIRE(gpus_fit(cluster, cluster.find_task("two"), make_id<NodeId>(0), gpus));
        ++seen[gpus];
    }
    REQUIRE(seen.size() == 6);  // 4 choose 2
    for (const auto& [gpus, count] : seen) CHECK(count == Catch::Approx(1000).epsilon(0.12));
}

TEST_CASE("FGD's GPU is the first of the best truncated score") {
    // Expected: fractions of 500. GPU 1 has 700 left, GPU 3 has 500, the rest is idle.
    const auto cluster =
        one_node(nullptr, {task("x", 1, 300, {1}), task("y", 1, 500, {3}), task("new", 1, 500)});
    const fragmentation::Workload workload{{{.cpu_milli = 0, .gpu_count = 1, .gpu_share_milli = 500}}};
    const auto metric = std::make_shared<const fragmentation::Fgd>(workload, cluster.inventory());
    // On GPU 1, 200 useless ones remain (F + 0.2); on GPU 0 and 3 nothing does: the lower of the two.
    CHECK(pick(FgdGpus{metric}, cluster, "new") == gpu_bit(0));
}

}  // namespace gpu_pickers_tests
