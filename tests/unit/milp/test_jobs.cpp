// SPDX-License-Identifier: Apache-2.0
// Joint allocation and priority packing: what is refused, and what a limit is for.
#include "support/catch.hpp"

#include <gpusched/milp/milp.hpp>

#include <chrono>
#include <thread>

using namespace gpusched;
using namespace gpusched::milp;

TEST_CASE("a joint allocation has columns for the pods that switches can hold, and jobs of different names") {
    const JointProblem p{{{"a", 100'000, 0}, {"b", 2, 1}, {"c", 8, 0, NetworkMode::required}},
                         {"s", "t"},
                         {{1000, {7, 8}, {1, 0}}, {2000, {3, 4}, {2, 1}}}};
    const auto m = joint_allocation(p);
    CHECK(m.index("z").extents == std::vector<int>{3, 2, 8 + 1});
    CHECK(m.columns() == (7 + 1) + (8 + 1) + 2 * (2 + 1) + 2 + 3);
    CHECK(m.rows() == 5 + 3 + 2 * 2);
    auto twice = p;
    twice.jobs[1].name = "a";
    REQUIRE_THROWS_MESSAGE(joint_allocation(twice), InvalidInput, "job 'a' twice");
    CHECK(joint_allocation({{{"", 1, 1}, {"", 1, 1}}, p.switches, p.shapes}).columns() == 4 * 2 + 2);
    // Jobs without GPUs are weighed with their pods.
    const auto cores =
        joint_allocation({{{"a", 2}, {"b", 6}}, {"s", "t"}, {{.gpu_milli = 0, .slots = {5, 5}}}});
    const auto x = cores.encode({{1, 1}, {0, 0}});
    CHECK(evaluate(cores, x).objective == Catch::Approx(0.25 * spread_entropy({1, 1}) - cores.placed_worth));
}

TEST_CASE("the time limit of priority packing is for all priorities together") {
    ClusterSpec spec;
    spec.nodes.push_back({.name = "n", .gpu_model = "A", .gpu_count = 4, .cpu_milli = 8000, .memory_mib = 9});
    for (int i = 0; i < 4; ++i)
        spec.tasks.push_back(
            {.name = "t" + std::to_string(i), .cpu_milli = 1, .gpu_count = 1, .priority = i});
    std::vector<double> limits;
    const AnySolver slow("slow", [&](const Model&, const SolveOptions& options, const Context&) {
        limits.push_back(options.time_limit.value_or(-1));
        std::this_thread::sleep_for(std::chrono::milliseconds(30));
        return Solution{.status = Status::time_limit};
    });
    const auto result = priority_packing(Cluster::build(spec), {.solve = {.time_limit = 0.07}}, slow);
    CHECK_FALSE(result.optimal);
    REQUIRE(limits.size() == 4);
    CHECK(limits[0] <= 0.07);
    CHECK(limits[1] <= 0.041);
    CHECK(limits[3] == 0);
}

TEST_CASE("priority packing refuses options before it looks for pending tasks") {
    const auto idle = Cluster::build(
        {.nodes = {{.name = "n", .gpu_model = "A", .gpu_count = 4, .cpu_milli = 8000, .memory_mib = 9}}});
    const AnySolver never("never", [](const Model&, const SolveOptions&, const Context&) -> Solution {
        throw BackendError("asked");
    });
    const PackingOptions wrong{
        .solve = {.mip_gap = std::numeric_limits<double>::quiet_NaN(), .threads = -1, .seed = -3}};
    for (const auto* part : {"threads -1 1 1024", "seed: -3", "mip_gap: nan"}) {
        REQUIRE_THROWS_MESSAGE(priority_packing(idle, wrong, never), InvalidInput, part);
        REQUIRE_THROWS_MESSAGE(packing_model(idle, 0, {}, wrong), InvalidInput, part);
        REQUIRE_THROWS_MESSAGE(conflicting_groups(Model{}, never, wrong.solve), InvalidInput, part);
    }
    CHECK(priority_packing(idle, {}, never).optimal);
}

TEST_CASE("packing models bound the resources of nodes behind a slot that a node has left") {
    Cluster cluster;
    const auto leaves = cluster.add_node({.name = "leaves"});
    cluster.add_node({.name = "stays", .cpu_milli = 8000, .memory_mib = 8, .resources = {{"licence", 1}}});
    for (const auto* name : {"t", "u"})
        cluster.add_task({.name = name, .cpu_milli = 1, .resources = {{"licence", 1}}});
    cluster.remove_node(leaves);
    CHECK(packing_model(cluster, 0).rows_in("extras") == 1);
    if (available_solvers().empty()) return;
    const auto result = priority_packing(cluster);
    REQUIRE(result.steps.size() == 1);
    CHECK(result.steps[0].placed == 1);
}

TEST_CASE("packing models refuse clusters of another size") {
    ClusterSpec spec;
    for (int n = 0; n < 2; ++n)
        spec.nodes.push_back({.name = "n" + std::to_string(n),
                              .gpu_model = "A",
                              .gpu_count = 2 + n,
                              .cpu_milli = 8000,
                              .memory_mib = 9});
    for (int t = 0; t < 3; ++t)
        spec.tasks.push_back({.name = "t" + std::to_string(t), .gpu_count = 1, .gpu_share_milli = 400});
    const auto cluster = Cluster::build(spec);
    const auto m = packing_model(cluster, 0);
    const std::vector<NodeId> placement(3, make_id<NodeId>(std::size_t{1}));
    const auto x = m.encode(cluster, placement);
    CHECK(m.decode(cluster, x) == placement);
    auto fewer_nodes = spec, more_nodes = spec, fewer_tasks = spec, other_cards = spec;
    fewer_nodes.nodes.pop_back();
    more_nodes.nodes.push_back({.name = "n2", .gpu_model = "A", .gpu_count = 4});
    fewer_tasks.tasks.pop_back();
    other_cards.nodes[0].gpu_count = 3;
    for (const auto& other : {fewer_nodes, more_nodes, fewer_tasks, other_cards}) {
        const auto built = Cluster::build(other);
        const std::vector<NodeId> nowhere(built.task_count(), none<NodeId>);
        REQUIRE_THROWS_MESSAGE(m.encode(built, nowhere), InvalidInput, "cluster nodes tasks model made");
        REQUIRE_THROWS_MESSAGE(m.decode(built, x), InvalidInput, "cluster nodes tasks model made");
    }
}
