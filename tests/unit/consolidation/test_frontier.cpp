// SPDX-License-Identifier: Apache-2.0
// Frontiers: plans along the trade-off between what is vacated and what is moved.
#include "example_clusters.hpp"

#include "consolidation/price_ladder.hpp"

using namespace testing_support;

namespace {

/// Three nodes that can be vacated: "a" (8 GPUs) by one move, "b" (4) by two, "c" (2) by two. On "z" there is room for all.
ClusterSpec three_prices() {
    return {.nodes = {node("a", 8), node("b", 4), node("c", 2), node("z", 8)},
            .tasks = {task("a1", "a", {0}), task("b1", "b", {0}), task("b2", "b", {1}), task("c1", "c", {0}),
                      task("c2", "c", {1}), task("stays", "z", {0}, true)}};
}

}  // namespace

TEST_CASE("a frontier goes from the cheapest node to all of them") {
    const auto spec = three_prices();
    const auto cluster = Cluster::build(spec);
    const auto frontier = con::frontier(cluster);
    REQUIRE(frontier.points.size() == 3);
    const std::int64_t gpus[] = {8, 12, 14}, moves[] = {1, 3, 5};
    for (std::size_t i = 0; i < 3; ++i) {
        const auto& point = frontier.points[i];
        CHECK(point.result.stats.vacated_gpus == gpus[i]);
        CHECK(point.result.stats.relocation_cost == moves[i]);
        CHECK(point.weight_at_most == gpus[i]);  // nothing better can be done
        CHECK(point.value_at_most_milli == point.result.stats.value_milli);
        CHECK(check(spec, cluster, point.result.plan).ok);
    }
    CHECK(frontier.bound_method == "counting");
    CHECK(frontier.stop_reason == StopReason::completed);
}

TEST_CASE("a frontier has at most `points` points: the first, the last, even steps of cost between") {
    const auto cluster = Cluster::build(three_prices());
    const auto costs = [](const con::Frontier& frontier) {
        std::vector<std::int64_t> all;
        for (const auto& point : frontier.points) all.push_back(point.result.stats.relocation_cost);
        return all;
    };
    con::FrontierOptions options;
    options.points = 2;
    CHECK(costs(con::frontier(cluster, options)) == std::vector<std::int64_t>{1, 5});
    options.points = 1;
    CHECK(costs(con::frontier(cluster, options)) == std::vector<std::int64_t>{5});

    const auto kept = [](const std::vector<std::int64_t>& given, std::size_t most) {
        std::vector<std::int64_t> all;
        for (const auto i : con::detail::even_steps(given, most)) all.push_back(given[i]);
        return all;
    };
    using Costs = std::vector<std::int64_t>;
    CHECK(kept({1, 2, 3, 4, 50, 51, 100}, 3) == Costs{1, 50, 100});
    CHECK(kept({1, 2, 3, 4, 98, 99, 100}, 5) ==
          Costs{1, 4, 98, 99, 100});  // as near to 26, 51 and 76 as can be, each once
    CHECK(kept({1, 97, 98, 99, 100}, 4) == Costs{1, 97, 98, 100});
    CHECK(kept({1, 2, 3}, 3) == Costs{1, 2, 3});
    CHECK(kept({}, 1) == Costs{});
}

TEST_CASE("a frontier reports that the migration budget ended it") {
    const auto cluster = Cluster::build(three_prices());
    con::FrontierOptions options;
    options.max_moves = 3;
    const auto frontier = con::frontier(cluster, options);
    CHECK(frontier.points.size() == 2);
    CHECK(frontier.stop_reason == StopReason::move_budget);
}

TEST_CASE("a frontier ends at the price of its options") {
    const auto cluster = Cluster::build(three_prices());
    const auto gpus_down_to = [&](std::int64_t price) {
        con::FrontierOptions options;
        options.price = price;
        const auto points = con::frontier(cluster, options).points;
        return points.empty() ? 0 : points.back().result.stats.vacated_gpus;
    };
    CHECK(gpus_down_to(1000) == 14);
    CHECK(gpus_down_to(1001) == 12);
    CHECK(gpus_down_to(2001) == 8);
    CHECK(gpus_down_to(8001) == 0);
}

TEST_CASE("a frontier does not depend on the number of threads") {
    const auto cluster = Cluster::build(generated());
    const auto run = [&](std::size_t threads) {
        con::FrontierOptions options;
        options.threads = threads;
        options.points = 5;
        return con::frontier(cluster, options);
    };
    const auto one = run(1), eight = run(8);
    REQUIRE(one.points.size() == eight.points.size());
    REQUIRE(one.points.size() > 3);
    for (std::size_t i = 0; i < one.points.size(); ++i) {
        CHECK(one.points[i].result.plan == eight.points[i].result.plan);
        CHECK(one.points[i].weight_at_most == eight.points[i].weight_at_most);
        CHECK(one.points[i].value_at_most_milli == eight.points[i].value_at_most_milli);
    }
}

TEST_CASE("a frontier without bounds has none, and bad options are named") {
    const auto cluster = Cluster::build(three_prices());
    con::FrontierOptions options;
    options.search.bound_method = con::BoundMethod::none;
    const auto frontier = con::frontier(cluster, options);
    CHECK(frontier.bound_method.empty());
    CHECK(frontier.points.size() == 3);
    options.points = 0;
    REQUIRE_THROWS_MESSAGE(con::frontier(cluster, options), InvalidInput, "points: 0; expected 1 1000");
    options.points = 3;
    options.search.polish_time = 1.0;
    REQUIRE_THROWS_MESSAGE(con::frontier(cluster, options), InvalidInput,
                           "frontier() does not support polish_time");
    CHECK(con::frontier(Cluster()).points.empty());
}

TEST_CASE("a task that comes back to other GPUs of its node has a price") {
    // "half" leaves "cards" and comes back to the GPU of another fraction, so that "w" has a GPU to go to.
    auto spec = ClusterSpec{.nodes = {node("whole", 1), node("cards", 2), node("spare", 1)},
                            .tasks = {task("w", "whole", {0}), task("half", "cards", {0}),
                                      task("other", "cards", {1}, true), task("stays", "spare", {0}, true)}};
    for (std::size_t i = 1; i < 4; ++i) spec.tasks[i].gpu_share_milli = 500;
    const auto cluster = Cluster::build(spec);
    const auto id = [&](const char* name) { return cluster.find_task(name); };
    const auto at = [&](const char* name) { return cluster.find_node(name); };
    Plan plan;
    plan.waves = 3;
    plan.moves = {{id("half"), at("cards"), at("spare"), 1, 0},
                  {id("half"), at("spare"), at("cards"), 2, 1},
                  {id("w"), at("whole"), at("cards"), 1, 2}};
    plan.vacated_nodes = {at("whole")};
    REQUIRE(check(spec, cluster, plan).ok);
    const auto report = con::value_report(cluster, plan);
    CHECK(report.moved_tasks == 1);
    CHECK(report.relocation_cost == 2);
}
