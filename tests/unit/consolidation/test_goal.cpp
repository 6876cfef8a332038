// SPDX-License-Identifier: Apache-2.0
#include "example_clusters.hpp"
#include "support/catch.hpp"
#include "support/random_cluster.hpp"

#include <gpusched/consolidation/goal.hpp>
#include <gpusched/model/apply.hpp>
#include <gpusched/verify/plan.hpp>

using namespace testing_support;

namespace {

// Three nodes with 1, 2 and 3 single-GPU tasks, and one that is full of locked ones but for four GPUs.
ClusterSpec stairs() {
    return {.nodes = {node("a"), node("b"), node("c"), node("d"), node("e")},
            .tasks = {task("a0", "a", {0}), task("b0", "b", {0}), task("b1", "b", {1}), task("c0", "c", {0}),
                      task("c1", "c", {1}), task("c2", "c", {2}), task("l", "d", {0, 1, 2, 3}, true)}};
}

}  // namespace

TEST_CASE("a goal is reached by the cheapest nodes") {
    const auto spec = stairs();
    const auto cluster = Cluster::build(spec);
    // e is empty, so each number needs one node fewer; of a to c the one with the fewest tasks goes first.
    const std::int64_t moves[] = {0, 1, 3};
    for (std::int64_t count = 1; count <= 3; ++count) {
        const auto found = con::reach_goal(cluster, {{}, count, "H20"});
        INFO("count " << count);
        CHECK(found.goal_reached);
        CHECK(found.available_before == 1);
        CHECK(found.available_after == count);
        CHECK(found.result.stats.moves == moves[count - 1]);
        CHECK(verify::plan(spec, to_spec(found.result.plan, cluster)).ok);
    }
    const auto found = con::reach_goal(cluster, {{}, 5});
    CHECK_FALSE(found.goal_reached);
    CHECK(found.available_after == 3);  // six tasks need two nodes
    CHECK(found.result.plan.vacated_nodes.size() == 2);
}

TEST_CASE("places for a shape are counted on all nodes") {
    const auto cluster = Cluster::build(stairs());
    // Places for seven GPUs: one on a, one on e.
    con::GoalOptions options{{}, 3};
    options.gpus = 7;
    auto found = con::reach_goal(cluster, options);
    CHECK(found.available_before == 2);
    CHECK(found.goal_reached);
    CHECK(found.available_after == 3);
    options.gpus = 4;  // 1 on a, b, c and d, 2 on e
    options.count = 6;
    CHECK(con::reach_goal(cluster, options).result.plan.moves.empty());
    options.count = 7;
    CHECK(con::reach_goal(cluster, options).available_before == 6);
}

TEST_CASE("goals count what the plan leaves, and their plans are valid") {
    int reached = 0;
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
        Rng rng(seed);
        const auto spec =
            random_cluster(rng, {.min_nodes = 5, .max_nodes = 30, .min_tasks = 10, .max_tasks = 80});
        const auto cluster = Cluster::build(spec);
        con::GoalOptions options;
        options.threads = 1;
        options.gpus = static_cast<int>(seed % 4);
        options.count = 1 + static_cast<std::int64_t>(rng.below(20));
        const auto found = con::reach_goal(cluster, options);
        const auto after = apply(cluster, found.result.plan);
        INFO("seed " << seed);
        REQUIRE(verify::plan(spec, to_spec(found.result.plan, cluster)).ok);
        std::int64_t available = 0;
        for (const auto node : after.nodes())
            if (!after.inventory().nodes.is_cordoned(node))
                available += options.gpus == 0 ? (after.occupants(node) == 0 ? 1 : 0)
                                               : gpu_count(after.idle_gpus(node)) / options.gpus;
        REQUIRE(found.available_after == available);
        REQUIRE(found.available_after >= found.available_before);
        REQUIRE(found.goal_reached == (available >= options.count));
        reached += found.goal_reached && !found.result.plan.moves.empty() ? 1 : 0;
    }
    CHECK(reached >= 3);
}

TEST_CASE("goals that mean nothing are refused") {
    const auto cluster = Cluster::build(stairs());
    con::GoalOptions options{{}, 0, "H99"};
    options.preset = con::Preset::ipc;
    options.objective = con::Objective::nodes;
    options.polish_time = 1;
    REQUIRE_THROWS_MESSAGE(con::reach_goal(cluster, options), InvalidInput, "gpu_model: 'H99'");
    for (const auto* field : {"count", "preset", "objective", "polish_time"})
        REQUIRE_THROWS_MESSAGE(con::reach_goal(cluster, options), InvalidInput, field);
}

TEST_CASE("places are made on nodes that stay in use") {
    // No node can be vacated. Once x has left a for b or c, a has four idle GPUs; c would lose a place of its own.
    const ClusterSpec spec{.nodes = {node("a"), node("b"), node("c")},
                           .tasks = {task("l", "a", {0, 1, 2, 3}, true), task("x", "a", {4, 5}),
                                     task("m", "b", {0, 1, 2, 3, 4}, true),
                                     task("n", "c", {0, 1, 2, 3}, true)}};
    const auto cluster = Cluster::build(spec);
    con::GoalOptions options{{}, 2};
    options.gpus = 4;
    const auto found = con::reach_goal(cluster, options);
    CHECK(found.available_before == 1);
    REQUIRE(found.goal_reached);
    REQUIRE(found.result.plan.moves.size() == 1);
    CHECK(found.result.plan.moves[0].task == cluster.find_task("x"));
    CHECK(found.result.plan.moves[0].to == cluster.find_node("b"));
    CHECK(found.result.plan.vacated_nodes.empty());
    CHECK(found.result.stats.relocation_cost == 1);
    CHECK(verify::plan(spec, to_spec(found.result.plan, cluster)).ok);

    options.max_moves = 0;
    const auto none = con::reach_goal(cluster, options);
    CHECK_FALSE(none.goal_reached);
    CHECK(none.result.plan.moves.empty());
    CHECK(none.result.stop_reason == StopReason::move_budget);
    options.max_moves.reset();
    options.price = 1001;  // more than a place is worth
    CHECK_FALSE(con::reach_goal(cluster, options).goal_reached);
}

TEST_CASE("a goal is reached with the fewer moves of vacating nodes and leaving them in use") {
    // Vacating a takes three moves; one task of b leaves room for the shape, too.
    const ClusterSpec spec{.nodes = {node("a", 4), node("b", 4), node("c", 8)},
                           .tasks = {fraction("p", "a", 0, 300), fraction("q", "a", 1, 300),
                                     fraction("r", "a", 2, 300), task("l", "b", {0, 1}, true),
                                     task("x", "b", {2}), task("m", "c", {0, 1, 2, 3, 4, 5}, true)}};
    const auto cluster = Cluster::build(spec);
    con::GoalOptions options{{}, 2};
    options.gpus = 2;
    const auto found = con::reach_goal(cluster, options);
    REQUIRE(found.available_before == 1);
    CHECK(found.goal_reached);
    CHECK(found.result.stats.moves == 1);
}

TEST_CASE("a goal that is there already has statistics of the cluster as it is") {
    const auto cluster = Cluster::build(stairs());
    const auto found = con::reach_goal(cluster, {{}, 1});
    CHECK(found.goal_reached);
    CHECK(found.result.plan.moves.empty());
    CHECK(found.result.stats.not_fully_occupied_before == 4);
    CHECK(found.result.stats.not_fully_occupied_after == 4);
}
