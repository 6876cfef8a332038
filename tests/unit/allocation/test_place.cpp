// SPDX-License-Identifier: Apache-2.0
// Placing one task: filters, ties, names, and the cached engine against the plain one.
#include "support/catch.hpp"

#include <gpusched/allocation/allocation.hpp>

using namespace gpusched;
using namespace gpusched::allocation;

namespace place_tests {

ClusterSpec nodes(int count, std::int64_t gpus = 8) {
    ClusterSpec spec;
    for (int i = 0; i < count; ++i) {
        NodeSpec n;
        n.name = "n" + std::to_string(i);
        n.gpu_model = i % 3 == 0 ? "A" : "B";
        n.gpu_count = gpus;
        n.cpu_milli = 64'000;
        n.memory_mib = 512 * 1024;
        n.network = {"root", "sw" + std::to_string(i / 2)};
        spec.nodes.push_back(n);
    }
    return spec;
}

TaskSpec task(std::string name, std::int64_t gpus, std::int64_t cores = 1) {
    TaskSpec t{.name = std::move(name), .gpu_count = gpus};
    t.cpu_milli = cores * 1000;
    return t;
}

TEST_CASE("place takes the best feasible node, and the first of equals") {
    auto spec = nodes(4);
    spec.tasks = {task("running", 2), task("new", 2), task("huge", 9), task("choosy", 1), task("cpu", 0)};
    spec.tasks[0].node = "n2";
    spec.tasks[0].gpus = {0, 1};
    spec.tasks[3].gpu_models = {"A"};
    spec.nodes[1].schedulable = false;
    auto cluster = Cluster::build(spec);
    Rng rng(0);
    const auto at = [&](const char* t, const auto& ranker) {
        return place(cluster, cluster.find_task(t), ranker, TightestGpu{}, rng);
    };
    CHECK(at("new", Packing{}) == Destination{make_id<NodeId>(2), 0b1100});
    CHECK(at("new", FirstFit{}) == Destination{make_id<NodeId>(0), 0b11});
    CHECK(at("choosy", Packing{}) == Destination{make_id<NodeId>(0), 0b1});
    CHECK(at("cpu", Packing{}) == Destination{make_id<NodeId>(2), 0});
    CHECK(at("huge", Packing{}) == std::nullopt);

    const auto filtered = [&](const char* t, const auto& filter) {
        return place(cluster, cluster.find_task(t), FirstFit{}, TightestGpu{}, rng, filter);
    };
    CHECK(filtered("new", OccupiedNodes{})->node == make_id<NodeId>(2));
    const auto second = cluster.inventory().domain(1, make_id<NodeId>(3));
    CHECK(filtered("new", WithinDomain{1, second})->node == make_id<NodeId>(2));
    CHECK(filtered("choosy", WithinDomain{1, second})->node == make_id<NodeId>(3));
    CHECK(filtered("choosy", Both<OccupiedNodes, WithinDomain>{{}, {1, second}}) == std::nullopt);
}

TEST_CASE("a picker's answer is checked, since any integer is a mask") {
    auto spec = nodes(2);
    spec.tasks = {task("one", 1), task("cpu", 0)};
    const auto cluster = Cluster::build(spec);
    const auto one = cluster.find_task("one");
    Rng rng(0);
    const auto with = [&](const auto& picker) { return place(cluster, one, FirstFit{}, picker, rng); };
    const auto mask = [](GpuMask gpus) { return [gpus](const Cluster&, TaskId, NodeId) { return gpus; }; };
    CHECK(with(mask(0b100))->gpus == 0b100);
    // A ranker in the place of the picker: 1001 is 0b1111101001.
    CHECK_THROWS_MESSAGE(with([](const Cluster&, TaskId, NodeId) { return 1001; }), InvalidInput,
                         "GPU picker GPUs [0, 3, 5, 6, 7, 8, 9] of node 'n0', task 'one' cannot");
    CHECK_THROWS_MESSAGE(with(mask(0)), InvalidInput, "GPUs [] of node 'n0', task 'one' cannot");
    CHECK_THROWS_MESSAGE(with(mask(0b11)), InvalidInput, "GPUs [0, 1] of node 'n0'");
    RankedPlacement kept(FirstFit{}, mask(0b11));
    CHECK_THROWS_MESSAGE(kept(cluster, one, rng), InvalidInput, "GPUs [0, 1] of node 'n0'");
    CHECK(place(cluster, cluster.find_task("cpu"), FirstFit{}, mask(0b11), rng)->gpus ==
          0);  // it is not called
}

TEST_CASE("place by name is the same as with the policies themselves") {
    auto spec = nodes(3);
    spec.tasks = {task("hp", 2), task("lp", 2), task("new", 1)};
    spec.tasks[0].node = "n0";
    spec.tasks[0].gpus = {0, 1};
    spec.tasks[0].priority_class = PriorityClass::hp;
    spec.tasks[1].node = "n1";
    spec.tasks[1].gpus = {0, 1};
    spec.tasks[1].priority_class = PriorityClass::lp;
    spec.tasks[2].priority_class = PriorityClass::lp;
    const auto cluster = Cluster::build(spec);
    const auto fresh = cluster.find_task("new");
    CHECK(place(cluster, fresh)->node == make_id<NodeId>(1));  // packing ties, the spot node wins
    CHECK(place(cluster, fresh, {.rankers = {"least_allocated"}})->node == make_id<NodeId>(2));
    for (const auto& name : rankers().names())
        CHECK(place(cluster, fresh, {.rankers = {std::string(name)}}).has_value());
    for (const char* picker : {"fewest_crossings", "least_harm", "tightest_gpu", "random"})
        CHECK(gpu_count(place(cluster, fresh, {.gpu_picker = picker})->gpus) == 1);
    CHECK(place(cluster, fresh, {.rankers = {"random"}, .seed = 5}) ==
          place(cluster, fresh, {.rankers = {"random"}, .seed = 5}));

    REQUIRE_THROWS_MESSAGE(place(cluster, fresh, {.rankers = {}}), InvalidInput,
                           "rankers: 0 entries; expected 1");
    REQUIRE_THROWS_MESSAGE(place(cluster, fresh, {.rankers = {"best"}}), InvalidInput,
                           "ranker: 'best'; expected packing,");
    REQUIRE_THROWS_MESSAGE(place(cluster, fresh, {.gpu_picker = "any"}), InvalidInput,
                           "gpu_picker: 'any'; expected");
    REQUIRE_THROWS_MESSAGE(placements().make("worst", cluster.inventory(), {}), InvalidInput,
                           "placement: 'worst'; expected random,");
    REQUIRE_THROWS_AS(placements().make("fgd", cluster.inventory(), {}),
                      InvalidInput);  // nothing is expected
    REQUIRE_THROWS_MESSAGE(place(cluster, cluster.find_task("hp")), InvalidInput,
                           "task: 'hp'; expected pending runs on node 'n0'");
    REQUIRE_THROWS_MESSAGE(place(cluster, make_id<TaskId>(3)), InvalidInput,
                           "task: #3; expected cluster's 3");
}

TEST_CASE("calls by name know the policies of the registries that they are given") {
    struct LastNode {
        std::int64_t operator()(const Cluster&, TaskId, NodeId node) const {
            return static_cast<std::int64_t>(index(node));
        }
    };
    struct Counts {
        std::int64_t expected = 0;
        std::int64_t operator()(const Cluster&, TaskId, NodeId node) const {
            return -expected * static_cast<std::int64_t>(index(node));
        }
    };
    auto spec = nodes(3);
    spec.tasks = {task("new", 1)};
    const auto cluster = Cluster::build(spec);
    const auto fresh = cluster.find_task("new");
    auto known = registries();
    known.rankers.add<LastNode>("last_node");
    known.rankers.add("last_of_inventory", [](const Inventory&) { return LastNode{}; });
    known.rankers.add("last_by_2", Counts{-2});  // a policy as it is, with what it holds
    known.rankers.add("counts", [](const Inventory&, const fragmentation::Workload& workload) {
        return Counts{static_cast<std::int64_t>(workload.shapes.size())};
    });
    CHECK(place(cluster, fresh, {.rankers = {"last_node"}}, known)->node == make_id<NodeId>(2));
    CHECK(place(cluster, fresh, {.rankers = {"last_of_inventory"}}, known)->node == make_id<NodeId>(2));
    CHECK(place(cluster, fresh, {.rankers = {"last_by_2"}}, known)->node == make_id<NodeId>(2));
    REQUIRE_THROWS_MESSAGE(place(cluster, fresh, {.rankers = {"last_node"}}), InvalidInput,
                           "ranker: 'last_node'; expected packing,");

    // An entry says itself whether it looks at a workload, which is made for those alone.
    CHECK(!known.rankers.expects_workload("last_node"));
    CHECK(!known.rankers.expects_workload("last_of_inventory"));
    CHECK(!known.rankers.expects_workload("last_by_2"));
    CHECK(known.rankers.expects_workload("counts"));
    CHECK(!rankers().expects_workload("counts"));
    // Rare shapes of several GPUs count for expected fill; FGD is as published.
    CHECK(rankers().workload_options("expected_fill").coverage_percent == 100);
    CHECK(placements().workload_options("fgd").coverage_percent == 95);
    CHECK(rankers().workload_options("packing").coverage_percent == 95);
    CHECK(place(cluster, fresh, {.rankers = {"counts", "last_node"}}, known)->node == make_id<NodeId>(0));
    for (const auto& name : registries().rankers.names())
        CHECK(rankers().expects_workload(name) == (name == "fgd" || name == "expected_fill"));
    for (const auto& name : gpu_pickers().names())
        CHECK(gpu_pickers().expects_workload(name) == (name == "fgd" || name == "expected_fill"));
    for (const auto& name : placements().names())
        CHECK(placements().expects_workload(name) == (name == "fgd" || name == "expected_fill"));
}

TEST_CASE("feasible nodes are the nodes that fit the task, in the cluster's order") {
    auto spec = nodes(3);
    spec.tasks = {task("here", 8), task("new", 1), task("huge", 9)};
    spec.tasks[0].node = "n1";
    for (int gpu = 0; gpu < 8; ++gpu) spec.tasks[0].gpus.push_back(gpu);
    const auto cluster = Cluster::build(spec, IdOrder::as_listed);
    CHECK(feasible_nodes(cluster, make_id<TaskId>(1)) == std::vector{make_id<NodeId>(0), make_id<NodeId>(2)});
    CHECK(feasible_nodes(cluster, make_id<TaskId>(2)).empty());
    REQUIRE_THROWS_MESSAGE(feasible_nodes(cluster, make_id<TaskId>(3)), InvalidInput,
                           "task: #3; expected cluster's 3");
}

TEST_CASE("obstacles name the constraint that keeps a task off each node, with its old copy or without") {
    auto spec = nodes(4);
    spec.nodes[2].schedulable = false;
    spec.nodes[3].labels["zone"] = "a";
    spec.tasks = {task("here", 8), task("new", 1)};
    spec.tasks[0].node = "n1";
    for (int gpu = 0; gpu < 8; ++gpu) spec.tasks[0].gpus.push_back(gpu);
    spec.tasks[1].node_selector["zone"] = "a";
    const auto cluster = Cluster::build(spec);
    using Obstacles = std::vector<Obstacle>;
    const auto here = make_id<TaskId>(0), fresh = make_id<TaskId>(1);
    CHECK(find_obstacles(cluster, here) ==
          Obstacles{Obstacle::none, Obstacle::gpu, Obstacle::cordoned, Obstacle::none});
    CHECK(find_obstacles(cluster, here, OldCopy::leaves) ==
          Obstacles{Obstacle::none, Obstacle::none, Obstacle::cordoned, Obstacle::none});
    const Obstacles of_new{Obstacle::node_selector, Obstacle::node_selector, Obstacle::cordoned,
                           Obstacle::none};
    CHECK(find_obstacles(cluster, fresh) == of_new);
    CHECK(find_obstacles(cluster, fresh, OldCopy::leaves) == of_new);
    CHECK(cluster.is_placed(here));
    REQUIRE_THROWS_MESSAGE(find_obstacles(cluster, make_id<TaskId>(2)), InvalidInput,
                           "task: #2; expected cluster's 2");
}

TEST_CASE("cached scores agree with a scan of all nodes while tasks come and go") {
    // Random arrivals and departures with fractions, models, classes, groups and a network domain. The cached policy
    // must follow; `place` knows nothing of the past.
    Rng rng(11);
    auto spec = nodes(40, 4);
    for (auto& node : spec.nodes) node.gpu_count = rng.between(1, 8);
    for (int i = 0; i < 400; ++i) {
        auto t = task("t" + std::to_string(i), static_cast<std::int64_t>(rng.below(4)),
                      static_cast<std::int64_t>(rng.between(1, 12)));
        if (t.gpu_count == 1 && rng.below(2) == 0) t.gpu_share_milli = 100 * rng.between(2, 7);
        t.memory_mib = rng.between(0, 100) * 1024;
        if (rng.below(4) == 0) t.gpu_models = {"A"};
        if (rng.below(3) == 0) t.priority_class = rng.below(2) == 0 ? PriorityClass::lp : PriorityClass::hp;
        if (rng.below(4) == 0) t.anti_affinity = {{"g" + std::to_string(rng.below(3)), node_level, 1}};
        if (rng.below(6) == 0) t.affinity = {{"together" + std::to_string(rng.below(2)), 1}};
        spec.nodes[static_cast<std::size_t>(i % 40)].eviction_count = rng.between(0, 3);
        spec.tasks.push_back(t);
    }
    const auto initial = Cluster::build(spec);
    const auto workload = fragmentation::typical_workload(spec.tasks);
    const auto metric = std::make_shared<const fragmentation::Fgd>(workload, initial.inventory());
    const auto fill = std::make_shared<const fragmentation::ExpectedFill>(workload, initial.inventory());

    const auto run = [&](const auto& ranker, const auto& picker) {
        auto cluster = initial;
        cluster.keep_events();
        RankedPlacement policy(ranker, picker);
        Rng events(3);
        std::vector<TaskId> placed;
        int refused = 0;
        for (int step = 0; step < 3000; ++step) {
            if (!placed.empty() && events.below(5) < 2) {
                std::swap(events.pick(std::span(placed)), placed.back());
                cluster.remove(placed.back());
                cluster.commit();
                placed.pop_back();
                continue;
            }
            const auto t = make_id<TaskId>(static_cast<std::size_t>(events.below(cluster.task_count())));
            if (cluster.is_placed(t)) continue;
            const auto expected = place(cluster, t, ranker, picker, events);
            const auto actual = policy(cluster, t, events);
            REQUIRE(actual == expected);
            if (!actual) {
                ++refused;
                continue;
            }
            REQUIRE(gpus_fit(cluster, t, actual->node, actual->gpus));
            cluster.assign(t, actual->node, actual->gpus);
            if (events.chance(0.9))
                cluster.commit();  // else it can still be undone when the next one is placed
            placed.push_back(t);
        }
        CHECK(refused > 0);
        CHECK(placed.size() > 50);
    };
    const TightestGpu tightest;
    run(BestFit{}, tightest);
    run(GpuClustering{}, tightest);
    run(LeastFragmentation{metric}, tightest);
    run(Lexicographic(Packing{}, Homogeneous{}, EvictionHistory{}), tightest);
    run(FirstFit{}, tightest);
    run(LeastFillLoss{fill}, LeastFillLossGpus{fill});
}

TEST_CASE("the random policy is uniform over feasible nodes") {
    auto spec = nodes(5);
    spec.tasks = {task("new", 1), task("full", 8)};
    spec.tasks[1].node = "n4";
    spec.tasks[1].gpus = {0, 1, 2, 3, 4, 5, 6, 7};
    const auto cluster = Cluster::build(spec);
    auto policy = placements().make("random", cluster.inventory(), {});
    std::vector<int> seen(5);
    Rng rng(2);
    for (int i = 0; i < 8000; ++i) ++seen[index(policy(cluster, make_id<TaskId>(0), rng)->node)];
    CHECK(seen[4] == 0);
    for (int n = 0; n < 4; ++n) CHECK(seen[static_cast<std::size_t>(n)] == Catch::Approx(2000).epsilon(0.1));
}

TEST_CASE("power of d takes the least loaded of d, by the loads it remembers") {
    auto spec = nodes(2);
    for (int i = 0; i < 12; ++i) spec.tasks.push_back(task("t" + std::to_string(i), 1));
    auto cluster = Cluster::build(spec);
    Rng rng(4);
    // With many choices it sees both nodes and so alternates.
    PowerOfD fresh({.choices = 64, .refresh_every = 1});
    for (std::size_t i = 0; i < 6; ++i) {
        const auto to = fresh(cluster, make_id<TaskId>(i), rng);
        REQUIRE(to);
        cluster.assign(make_id<TaskId>(i), to->node, to->gpus);
    }
    CHECK(gpu_count(cluster.idle_gpus(make_id<NodeId>(0))) == 5);
    CHECK(gpu_count(cluster.idle_gpus(make_id<NodeId>(1))) == 5);
    // Old loads: one node looks emptier for as long as they are kept.
    cluster.assign(make_id<TaskId>(6), make_id<NodeId>(0), gpu_bit(7));
    PowerOfD old({.choices = 64, .refresh_every = 4});
    for (std::size_t i = 7; i < 11; ++i) {
        const auto to = old(cluster, make_id<TaskId>(i), rng);
        REQUIRE(to);
        CHECK(to->node == make_id<NodeId>(1));
        cluster.assign(make_id<TaskId>(i), to->node, to->gpus);
    }
    CHECK(old(cluster, make_id<TaskId>(11), rng)->node == make_id<NodeId>(0));
    REQUIRE_THROWS_MESSAGE(PowerOfD({.choices = 0}), InvalidInput, "choices: 0; expected 1 1000");
    REQUIRE_THROWS_MESSAGE(PowerOfD({.refresh_every = 0}), InvalidInput, "refresh_every: 0; expected 1");
}

TEST_CASE("a placement policy may be a plain function") {
    auto spec = nodes(2);
    spec.tasks = {task("new", 1)};
    const auto cluster = Cluster::build(spec);
    AnyPlacement policy([](const Cluster&, TaskId, Rng&) -> std::optional<Destination> {
        return Destination{make_id<NodeId>(1), gpu_bit(3)};
    });
    Rng rng(0);
    const auto copy = policy;
    CHECK(AnyPlacement(copy)(cluster, make_id<TaskId>(0), rng) ==
          Destination{make_id<NodeId>(1), gpu_bit(3)});
}

}  // namespace place_tests
