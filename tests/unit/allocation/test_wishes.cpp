// SPDX-License-Identifier: Apache-2.0
// Wishes: preferred networks and best-effort localities, in rankers and GPU pickers.
#include "support/catch.hpp"

#include <gpusched/allocation/allocation.hpp>

using namespace gpusched;
using namespace gpusched::allocation;

namespace wishes_tests {

NodeSpec node(std::string name, std::string sw, const char* hardware = nullptr) {
    NodeSpec n{.name = std::move(name),
               .gpu_model = "M",
               .gpu_count = 8,
               .cpu_milli = 64'000,
               .memory_mib = 512 * 1024};
    if (!sw.empty()) n.network = {"root", std::move(sw)};
    if (hardware != nullptr) n.hardware = Hardware{hardware, {}};
    return n;
}

TaskSpec task(std::string name, std::int64_t gpus, std::string where = {}, std::vector<int> held = {}) {
    TaskSpec t{.name = std::move(name), .gpu_count = gpus};
    if (!where.empty()) t.node = std::move(where);
    t.gpus = std::move(held);
    return t;
}

TaskSpec of_job(TaskSpec t, std::optional<NetworkAffinity> wish) {
    t.job = "j";
    t.network_affinity = wish;
    return t;
}

TaskSpec wishing(TaskSpec t, HardwareLevel level, HardwareQos qos = HardwareQos::best_effort) {
    t.hardware_affinity = {{level, qos}};
    return t;
}

TEST_CASE("a preferred network places a task near its job's members") {
    const NetworkAffinity wish{1, NetworkMode::preferred};
    ClusterSpec spec;
    spec.nodes = {node("a", "sw0"), node("b", "sw0"), node("c", "sw1"), node("lone", "")};
    spec.tasks = {of_job(task("m0", 1, "b", {0}), wish), of_job(task("m1", 1, "c", {0}), wish),
                  of_job(task("m2", 1, "c", {1}), wish), of_job(task("new", 1), wish),
                  of_job(task("careless", 1), {}),       task("alone", 1),
                  task("stranger", 1, "a", {0})};
    const auto cluster = Cluster::build(spec);
    const auto score = [&](const char* t, const char* n) {
        return NetworkWish{}(cluster, cluster.find_task(t), cluster.find_node(n));
    };
    CHECK(score("new", "a") == 1);
    CHECK(score("new", "b") == 1);
    CHECK(score("new", "c") == 2);
    CHECK(score("new", "lone") == 0);
    CHECK(score("m1", "c") == 1);  // the others only
    CHECK(score("careless", "c") == 0);
    CHECK(score("alone", "c") == 0);

    CHECK(place(cluster, cluster.find_task("new"), {.rankers = {"first_fit"}})->node ==
          cluster.find_node("a"));
    CHECK(place(cluster, cluster.find_task("new"), {.rankers = {"network_wish"}})->node ==
          cluster.find_node("c"));
    // The same through every kind of composition, which ask for the task's members once.
    Rng rng(0);
    const auto at = [&](const auto& ranker) {
        return place(cluster, cluster.find_task("new"), ranker, TightestGpu{}, rng)->node;
    };
    CHECK(at(Lexicographic(NetworkWish{}, Packing{})) == cluster.find_node("c"));
    CHECK(at(Weighted(Part{10, NetworkWish{}}, Part{1, FirstFit{}})) == cluster.find_node("c"));
    CHECK(at(Weighted(Part{-1, AnyRanker(NetworkWish{})})) == cluster.find_node("lone"));
    STATIC_REQUIRE(!is_node_local<Lexicographic<NetworkWish, Packing>>);
}

TEST_CASE("a best-effort locality draws a task to a node that can give it") {
    ClusterSpec spec;
    // rtx4090x8: every GPU its own NUMA node, sockets of four. a100x8: two NUMA nodes of four, each a socket.
    spec.nodes = {node("unknown", ""), node("fine", "", "rtx4090x8"), node("coarse", "", "a100x8"),
                  node("broken", "", "a100x8")};
    spec.tasks = {task("x", 6, "broken", {0, 1, 2, 4, 5, 6}), wishing(task("numa", 2), HardwareLevel::numa),
                  wishing(task("socket", 2), HardwareLevel::socket), task("none", 2),
                  wishing(task("one", 1), HardwareLevel::numa)};
    const auto cluster = Cluster::build(spec);
    const auto score = [&](const char* t, const char* n) {
        return HardwareWish{}(cluster, cluster.find_task(t), cluster.find_node(n));
    };
    CHECK(score("numa", "unknown") == 0);
    CHECK(score("numa", "fine") == 1);
    CHECK(score("numa", "coarse") == 2);
    CHECK(score("numa", "broken") == 0);  // one idle GPU on each socket
    CHECK(score("socket", "fine") == 1);
    CHECK(score("socket", "coarse") == 1);
    CHECK(score("socket", "broken") == 0);
    CHECK(score("none", "coarse") == 0);
    CHECK(score("one", "coarse") == 0);
    CHECK(place(cluster, cluster.find_task("numa"), {.rankers = {"hardware_wish"}})->node ==
          cluster.find_node("coarse"));
}

TEST_CASE("by wish keeps together the tasks that prefer it, and otherwise saves blocks for them") {
    // Idle: 3 and 4 5 6 7 of two NUMA nodes of four.
    ClusterSpec spec;
    spec.nodes = {node("n", "", "a100x8")};
    spec.tasks = {task("running", 3, "n", {0, 1, 2}), task("careless", 2),
                  wishing(task("numa", 2), HardwareLevel::numa),
                  wishing(task("socket", 2), HardwareLevel::socket), task("one", 1)};
    const auto cluster = Cluster::build(spec);
    const auto pick = [&](const char* t) {
        return ByWish{}(cluster, cluster.find_task(t), make_id<NodeId>(0));
    };
    CHECK(pick("careless") == (gpu_bit(3) | gpu_bit(4)));
    CHECK(pick("numa") == (gpu_bit(4) | gpu_bit(5)));
    CHECK(pick("socket") == (gpu_bit(4) | gpu_bit(5)));
    CHECK(pick("one") == gpu_bit(3));
    // The default of place by name.
    CHECK(place(cluster, cluster.find_task("careless"))->gpus == (gpu_bit(3) | gpu_bit(4)));
    CHECK(place(cluster, cluster.find_task("numa"))->gpus == (gpu_bit(4) | gpu_bit(5)));
}

}  // namespace wishes_tests
