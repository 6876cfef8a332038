// SPDX-License-Identifier: Apache-2.0
// Preemptors that need local cores, next to tasks that claim, use, lend and borrow cores.
#include "machines.hpp"

using namespace gpusched;
using namespace gpusched::preemption;
using testing_support::pending;
using testing_support::running;

TEST_CASE("local cores that are lent and borrowed are taken once") {
    ClusterSpec spec;
    NodeSpec node{.name = "n", .gpu_count = 2, .cpu_milli = 16'000, .memory_mib = 100};
    node.hardware = Hardware{"", {{0, 16, 0b11}}};
    spec.nodes = {node};
    const std::vector cores{0, 1, 2, 3, 4, 5, 6, 7}, others{8, 9, 10, 11, 12, 13, 14, 15};
    auto owner = running("owner", "n", {0}, 0);
    owner.priority_class = PriorityClass::hp;
    owner.preemptible = false;
    owner.standby = true;
    auto borrower = running("borrower", "n", {0}, 0);
    auto p = pending("p", 1, 10);
    p.cpu_local = true;
    using List = std::optional<std::vector<int>>;
    const auto decide = [&](const List& lent, const List& borrowed, std::int64_t cpu_milli) {
        owner.cores = lent;
        borrower.cores = borrowed;
        p.cpu_milli = cpu_milli;
        spec.tasks = {owner, borrower, p};
        const auto cluster = Cluster::build(spec, IdOrder::as_listed);
        return preempt(cluster, cluster.find_task("p")).decision;
    };
    // The other GPU's half is free, whether cores are listed or not.
    for (const auto& lent : {List(cores), List()})
        for (const auto& borrowed : {List(cores), List()}) {
            const auto found = decide(lent, borrowed, 8000);
            REQUIRE(found);
            CHECK(found->victims.empty());
            CHECK(found->gpus == 0b10);
            CHECK(!decide(lent, borrowed, 8001));
        }
    // Whoever borrows the GPU but runs on cores that nobody lends keeps both halves; it can be sent away.
    const auto found = decide(cores, others, 8000);
    REQUIRE(found);
    CHECK(found->victims == std::vector{TaskId{1}});
    CHECK(found->gpus == 0b10);
    borrower.locked = true;
    CHECK(!decide(cores, others, 1000));
    CHECK(decide(cores, cores, 8000));
}

TEST_CASE("a NUMA node has the cores that listed and other cores leave") {
    // Cores 0 to 7 with GPU 0, and 8 to 15 with GPU 1.
    ClusterSpec spec;
    NodeSpec node{.name = "n", .gpu_count = 2, .cpu_milli = 16'000, .memory_mib = 100};
    node.hardware = Hardware{"", {{0, 8, 0b01}, {0, 8, 0b10}}};
    spec.nodes = {node};
    auto stays = running("stays", "n", {}, 0);
    stays.locked = true;
    auto p = pending("p", 1, 10);
    p.cpu_local = true;
    const auto gpus = [&](std::optional<std::vector<int>> cores, std::int64_t used, std::int64_t wanted) {
        stays.cores = std::move(cores);
        stays.cpu_milli = used;
        p.cpu_milli = wanted;
        spec.tasks = {stays, p};
        const auto cluster = Cluster::build(spec, IdOrder::as_listed);
        const auto decision = preempt(cluster, cluster.find_task("p")).decision;
        return decision ? decision->gpus : GpuMask{0};
    };
    CHECK(gpus(std::vector{7}, 1000, 8000) == 0b10);
    CHECK(gpus(std::vector{8}, 1000, 8000) == 0b01);
    CHECK(gpus(std::vector{7, 8}, 2000, 8000) == 0);
    // A task without listed cores uses 2 and 1 thousandths.
    CHECK(gpus({}, 3, 7999) == 0b10);
    CHECK(gpus({}, 3, 7998) == 0b01);
    CHECK(gpus({}, 3, 8000) == 0);
    // Without GPUs, cores of both NUMA nodes are local.
    p.gpu_count = 0;
    p.cpu_milli = 15'997;
    spec.tasks.back() = p;
    const auto cluster = Cluster::build(spec, IdOrder::as_listed);
    CHECK(preempt(cluster, cluster.find_task("p")).decision);
}
