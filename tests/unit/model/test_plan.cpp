// SPDX-License-Identifier: Apache-2.0
// Plans by name and by id, and what applying them gives.
#include "support/catch.hpp"

#include <gpusched/model/model.hpp>

using namespace gpusched;

namespace {

// n0: a (GPU 0); n1: b (GPU 0), c (LP, GPUs 1-3); n2: empty; p pending.
Cluster cluster() {
    ClusterSpec spec;
    for (int i = 0; i < 3; ++i)
        spec.nodes.push_back({.name = "n" + std::to_string(i),
                              .gpu_model = "A",
                              .gpu_count = 4,
                              .cpu_milli = 8'000,
                              .memory_mib = 100});
    const auto add = [&](const char* name, std::optional<std::string> node, std::vector<int> gpus) {
        TaskSpec t{.name = name,
                   .cpu_milli = 1'000,
                   .gpu_count = static_cast<std::int64_t>(gpus.size()),
                   .node = std::move(node)};
        if (t.node) t.gpus = std::move(gpus);
        spec.tasks.push_back(t);
    };
    add("a", "n0", {0});
    add("b", "n1", {0});
    add("c", "n1", {1, 2, 3});
    add("p", std::nullopt, {0, 1});
    spec.tasks[2].priority_class = PriorityClass::lp;
    return Cluster::build(spec);
}

PlanSpec plan() {
    PlanSpec p;
    p.waves = 1;
    p.evictions = {"c"};
    p.moves = {{"a", "n0", "n1", {2}, 0}};
    p.placements = {{"p", "n2", {1, 3}}};
    p.vacated_nodes = {"n0"};
    p.bound = {1, 2, 8, "counting"};
    return p;
}

}  // namespace

TEST_CASE("plans turn into ids and back") {
    const auto c = cluster();
    const auto ids = resolve(plan(), c);
    REQUIRE(ids.waves == 1);
    REQUIRE(ids.moves == std::vector<Move>{{TaskId{0}, NodeId{0}, NodeId{1}, 0b0100, 0}});
    REQUIRE(ids.vacated_nodes == std::vector<NodeId>{NodeId{0}});
    REQUIRE(ids.evictions == std::vector<TaskId>{TaskId{2}});
    REQUIRE(ids.placements == std::vector<Placement>{{TaskId{3}, NodeId{2}, 0b1010}});
    REQUIRE(ids.bound == plan().bound);
    REQUIRE(to_spec(ids, c) == plan());
    REQUIRE(to_spec(Plan{}, c) == PlanSpec{});
    REQUIRE(resolve(PlanSpec{}, c) == Plan{});
}

TEST_CASE("resolving sorts moves by wave and vacated nodes by id") {
    auto spec = plan();
    spec.waves = 3;
    spec.moves = {{"b", "n1", "n0", {3}, 2}, {"a", "n0", "n1", {2}, 0}, {"c", "n1", "n0", {0, 1, 2}, 2}};
    spec.vacated_nodes = {"n2", "n0"};
    const auto ids = resolve(spec, cluster());
    REQUIRE(ids.moves[0].task == TaskId{0});
    REQUIRE(ids.moves[1].task == TaskId{1});
    REQUIRE(ids.moves[2].task == TaskId{2});
    REQUIRE(ids.vacated_nodes == std::vector<NodeId>{NodeId{0}, NodeId{2}});
}

TEST_CASE("resolving reports everything that has no id") {
    PlanSpec bad;
    bad.waves = -1;
    bad.evictions = {"x"};
    bad.moves = {{"y", "n9", "n1", {4, 0, 0}, 1}, {"a", "n0", "n8", {77}, INT64_MAX}};
    bad.placements = {{"z", "n1", {-1}}};
    bad.vacated_nodes = {"n7"};
    REQUIRE_THAT(testing_support::problems_in<InvalidInput>([&] { (void)resolve(bad, cluster()); }),
                 MentionsEach({"plan waves -1 0 4294967295", "eviction #0 unknown task 'x'",
                               "move #0 unknown task 'y'", "move #0 unknown node 'n9'",
                               "move #0 GPU 4 node 'n1', which has 4", "move #0 GPU 0 named twice",
                               "move #1 unknown node 'n8'", "move #1 wave 9223372036854775807 0 4294967295",
                               "placement #0 unknown task 'z'", "placement #0 GPU -1 node 'n1', which has 4",
                               "vacated_nodes unknown node 'n7'"}));
}

TEST_CASE("applying a plan gives its snapshot and leaves the old one alone") {
    const auto before = cluster();
    const auto after = apply(before, resolve(plan(), before));
    REQUIRE(before.node_of(TaskId{0}) == NodeId{0});
    REQUIRE(after.node_of(TaskId{0}) == NodeId{1});
    REQUIRE(after.gpus_of(TaskId{0}) == 0b0100);
    REQUIRE_FALSE(after.is_placed(TaskId{2}));
    REQUIRE(after.node_of(TaskId{3}) == NodeId{2});
    REQUIRE(after.occupants(NodeId{0}) == 0);
    REQUIRE(after.checkpoint() == 0);
    REQUIRE(after.cpu_free_milli(NodeId{1}) == 6'000);
    REQUIRE(apply(before, Plan{}).same_placement(before));
}

TEST_CASE("a step that is not possible is refused by name") {
    const auto c = cluster();
    const auto refused = [&](const std::string& words, const std::function<void(Plan&)>& spoil) {
        auto p = resolve(plan(), c);
        spoil(p);
        INFO(words);
        REQUIRE_THROWS_MESSAGE((void)apply(c, p), InvalidInput, words);
    };
    refused("eviction task 'b' not allowed", [](auto& p) { p.evictions = {TaskId{1}}; });
    refused("eviction task 'p' impossible not run", [](auto& p) { p.evictions = {TaskId{3}}; });
    refused("eviction task 'c' impossible", [](auto& p) { p.evictions = {TaskId{2}, TaskId{2}}; });
    refused("eviction #0 task 9 below 4", [](auto& p) { p.evictions = {TaskId{9}}; });
    refused("move task 'a' starts from node 'n2' not there", [](auto& p) { p.moves[0].from = NodeId{2}; });
    refused("move task 'a' node 'n0' leads already", [](auto& p) { p.moves[0].to = NodeId{0}; });
    refused("move #0 GPUs node 'n1' lacks has 4", [](auto& p) { p.moves[0].gpus = 0b10000; });
    refused("move #0: to: none below 3", [](auto& p) { p.moves[0].to = none<NodeId>; });
    refused("move #0 task: none below 4", [](auto& p) { p.moves[0].task = none<TaskId>; });
    refused("move task 'a' node 'n1' wave 1 not fit on GPUs names",
            [](auto& p) { p.moves[0].gpus = 0b0001; });
    refused("move task 'a' node 'n1' wave 1 names 0 GPUs task takes", [](auto& p) { p.moves[0].gpus = 0; });
    refused("move task 'a' node 'n1' wave 1 names 4 GPUs task takes",
            [](auto& p) { p.moves[0].gpus = 0b1111; });
    refused("move task 'a' node 'n1' wave 1 not fit: needs 1 idle GPU", [](auto& p) { p.evictions.clear(); });
    refused("wave 1 moves task 'a' twice", [](auto& p) {
        p.moves.push_back({TaskId{0}, NodeId{0}, NodeId{2}, 1, 0});
    });
    refused("move #0 wave 1 ascending waves from 0 to 0", [](auto& p) { p.moves[0].wave = 1; });
    refused("move #1 wave 0 ascending waves from 0 to 1", [](auto& p) {
        p.waves = 2;
        p.moves[0].wave = 1;
        p.moves.push_back({TaskId{1}, NodeId{1}, NodeId{2}, 1, 0});
    });
    refused("placement task 'b' node 'n2' impossible runs already", [](auto& p) {
        p.placements = {{TaskId{1}, NodeId{2}, 1}};
    });
    refused("placement task 'p' node 'n2' not fit GPUs", [](auto& p) { p.placements[0].gpus = 0b0111; });
    refused("placement #0 node: 3; below 3", [](auto& p) { p.placements[0].node = NodeId{3}; });
}

TEST_CASE("the moves of a wave hold their sources while they take their destinations") {
    ClusterSpec spec = cluster().to_spec();
    spec.tasks[2].gpu_count = 2;
    spec.tasks[2].gpus = {1, 2};
    spec.tasks[0].gpu_count = 4;
    spec.tasks[0].gpus = {0, 1, 2, 3};
    const auto c = Cluster::build(spec);
    // b and c leave n1, then a takes all of it: right in two waves, not in one.
    Plan p;
    p.waves = 2;
    spec.tasks[1].node = spec.tasks[2].node = "n2";
    p.moves = {{TaskId{1}, NodeId{1}, NodeId{2}, 0b0001, 0},
               {TaskId{2}, NodeId{1}, NodeId{2}, 0b0110, 0},
               {TaskId{0}, NodeId{0}, NodeId{1}, 0b1111, 1}};
    REQUIRE(apply(c, p).node_of(TaskId{0}) == NodeId{1});
    for (auto& m : p.moves) m.wave = 0;
    REQUIRE_THROWS_MESSAGE((void)apply(c, p), InvalidInput, "move task 'a' node 'n1' wave 1 not fit: needs");
}

TEST_CASE("a task that moves within a domain counts there twice for all others of the wave") {
    ClusterSpec spec;
    for (int i = 0; i < 4; ++i)
        spec.nodes.push_back({.name = "n" + std::to_string(i), .network = {i < 3 ? "s0" : "s1"}});
    for (const auto* node : {"n0", "n1", "n2", "n3"}) {
        TaskSpec t{.name = std::string("t") + node};
        t.node = node;
        spec.tasks.push_back(t);
    }
    spec.tasks[0].anti_affinity = spec.tasks[3].anti_affinity = {{"g", 0, 2}};
    const auto c = Cluster::build(spec);
    Plan p;
    p.waves = 1;
    // Both orders of the list mean the same wave: while both move, s0 has two copies of the first and the second.
    p.moves = {{TaskId{3}, NodeId{3}, NodeId{2}, 0, 0}, {TaskId{0}, NodeId{0}, NodeId{1}, 0, 0}};
    REQUIRE_THROWS_MESSAGE((void)apply(c, p), InvalidInput,
                           "not fit: anti-affinity domain 's0' hold 3 group 'g' most 2");
    std::swap(p.moves[0], p.moves[1]);
    REQUIRE_THROWS_MESSAGE((void)apply(c, p), InvalidInput,
                           "not fit: anti-affinity domain 's0' hold 3 group 'g' most 2");
    p.waves = 2;
    p.moves[1].wave = 1;
    REQUIRE_NOTHROW((void)apply(c, p));
}

TEST_CASE("ids that do not exist are all reported, vacated nodes included") {
    const auto c = cluster();
    auto p = resolve(plan(), c);
    validate(p, c);
    p.vacated_nodes = {NodeId{0}, NodeId{7}, none<NodeId>};
    p.evictions = {TaskId{4}};
    p.moves[0].from = NodeId{3};
    p.placements[0].gpus = 0b10000;
    const std::vector<std::string> expected{
        "eviction #0 task 4 below 4", "move #0 from: 3; below 3", "placement #0 GPUs node 'n2' lacks has 4",
        "vacated_nodes #1 node 7 below 3", "vacated_nodes #2 node none below 3"};
    CHECK_THAT(testing_support::problems_in<InvalidInput>([&] { validate(p, c); }), MentionsEach(expected));
    REQUIRE_THROWS_MESSAGE((void)apply(c, p), InvalidInput, expected.back());
}
