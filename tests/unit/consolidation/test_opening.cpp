// SPDX-License-Identifier: Apache-2.0
// Empty nodes that are opened at a price.
#include "example_clusters.hpp"
#include "support/instances.hpp"
#include "support/random_cluster.hpp"

using namespace testing_support;
using con::Preset;

namespace {

/// Node a is to be cleared; its task fits nowhere but on one of the two empty nodes, of which the smaller comes last.
ClusterSpec to_clear() {
    return {.nodes = {node("a"), node("full"), node("large", 16), node("small")},
            .tasks = {task("x", "a", {0, 1, 2, 3, 4, 5}), task("l", "full", {0, 1, 2, 3, 4, 5, 6, 7}, true)}};
}

/// Nodes of eight GPUs, four of them idle, and no core idle; the empty node has three times as many cores.
ClusterSpec short_of_cores() {
    ClusterSpec spec{.nodes = {node("a"), node("b"), node("c"), node("empty", 16)}, .tasks = {}};
    spec.nodes.back().cpu_milli = 3 * spec.nodes.front().cpu_milli;
    for (const auto* name : {"a", "b", "c"}) {
        spec.tasks.push_back(task(std::string("on ") + name, name, {0, 1, 2, 3}));
        spec.tasks.back().cpu_milli = spec.nodes.front().cpu_milli;
    }
    return spec;
}

}  // namespace

TEST_CASE("a node is cleared onto an empty one if that is requested") {
    const auto spec = to_clear();
    const auto cluster = Cluster::build(spec);
    for (const auto preset : {Preset::ipc, Preset::fast, Preset::best}) {
        INFO(enum_name(preset));
        con::Options options{.preset = preset, .clear = std::vector{cluster.find_node("a")}};
        CHECK(con::consolidate(cluster, options).plan.moves.empty());
        options.open_price = 0;
        CHECK(con::consolidate(cluster, options).stats.value_milli == 8000);
        for (const std::int64_t open_price : {1, 500, 1000}) {
            options.open_price = open_price;
            const auto result = con::consolidate(cluster, options);
            REQUIRE(check(spec, cluster, result.plan).ok);
            REQUIRE(result.plan.moves.size() == 1);
            CHECK(result.plan.vacated_nodes == std::vector{cluster.find_node("a")});
            CHECK(result.plan.opened_nodes == std::vector{cluster.find_node("small")});
            CHECK(result.stats.opened_nodes == 1);
            CHECK(result.stats.opened_gpus == 8);
            CHECK(result.stats.opened_weight == 8);
            CHECK(result.stats.value_milli == 8000 - 8 * open_price);
        }
        options.open_price = 1001;
        CHECK(con::consolidate(cluster, options).plan.moves.empty());
        options.open_price = 500;
        options.price = 4001;  // a move costs more than what is left
        CHECK(con::consolidate(cluster, options).plan.moves.empty());
    }
}

TEST_CASE("several nodes together pay for an empty one that none of them is worth") {
    const auto spec = short_of_cores();
    const auto cluster = Cluster::build(spec);
    for (const auto preset : {Preset::ipc, Preset::fast, Preset::best}) {
        INFO(enum_name(preset));
        con::Options options{.preset = preset, .open_price = 1000, .search = {.depth = 2}};
        const auto result = con::consolidate(cluster, options);
        REQUIRE(check(spec, cluster, result.plan).ok);
        CHECK(result.plan.vacated_nodes.size() == 3);
        CHECK(result.plan.opened_nodes.size() == 1);
        CHECK(result.stats.value_milli == 1000 * (24 - 16));
        CHECK(result.plan.bound.vacated_gpus_at_most == 8);
        CHECK(con::consolidate(cluster, {.preset = preset, .open_price = 1500}).plan.moves.empty());
        CHECK(con::consolidate(cluster, {.preset = preset}).plan.moves.empty());
    }
}

TEST_CASE("nothing moves from one node to another like it") {
    const ClusterSpec spec{.nodes = {node("a"), node("empty")}, .tasks = {task("x", "a", {0, 1})}};
    const auto cluster = Cluster::build(spec);
    CHECK(con::consolidate(cluster, {.open_price = 1000}).plan.moves.empty());
    REQUIRE_THROWS_MESSAGE(con::consolidate(cluster, {.open_price = 999}), InvalidInput,
                           "open_price: 999; expected 1000 without clear");
    REQUIRE_THROWS_MESSAGE(con::consolidate(cluster, {.open_price = -1}), InvalidInput,
                           "open_price: -1; expected 0");
}

TEST_CASE("many nodes are cleared onto empty ones, as few of them as are needed") {
    ClusterSpec spec;
    for (int n = 0; n < 40; ++n) {
        const auto name = "n" + std::to_string(n);
        spec.nodes.push_back(node(name));
        spec.nodes.push_back(node("empty" + std::to_string(n)));
        spec.tasks.push_back(task("x" + std::to_string(n), name, {0, 1, 2, 3}));
    }
    const auto cluster = Cluster::build(spec);
    std::vector<NodeId> clear;
    for (int n = 0; n < 40; ++n) clear.push_back(cluster.find_node("n" + std::to_string(n)));
    for (const auto preset : {Preset::ipc, Preset::fast, Preset::best}) {
        const auto result =
            con::consolidate(cluster, {.preset = preset, .threads = 1, .open_price = 800, .clear = clear});
        REQUIRE(check(spec, cluster, result.plan).ok);
        INFO(enum_name(preset));
        CHECK(result.plan.vacated_nodes.size() == 40);
        CHECK(result.plan.opened_nodes.size() == 20);
        auto limited =
            con::Options{.preset = preset, .threads = 1, .max_moves = 7, .open_price = 800, .clear = clear};
        const auto few = con::consolidate(cluster, limited);
        REQUIRE(check(spec, cluster, few.plan).ok);
        CHECK(few.plan.moves.size() <= 7);
        CHECK(few.plan.vacated_nodes.size() >= 6);
        CHECK(few.stats.value_milli > 0);
    }
}

TEST_CASE("a frontier with open nodes keeps below its bounds") {
    const auto spec = short_of_cores();
    const auto cluster = Cluster::build(spec);
    con::FrontierOptions options;
    options.open_price = 1000;
    const auto frontier = con::frontier(cluster, options);
    REQUIRE(!frontier.points.empty());
    for (const auto& point : frontier.points) {
        REQUIRE(check(spec, cluster, point.result.plan).ok);
        CHECK(point.result.stats.value_milli <= point.value_at_most_milli);
        CHECK(point.result.stats.vacated_weight <= point.weight_at_most);
    }
    CHECK(frontier.points.back().result.plan.opened_nodes.size() == 1);
}

TEST_CASE("a goal subtracts opened nodes from vacated ones") {
    const auto spec = short_of_cores();
    const auto cluster = Cluster::build(spec);
    // One node is empty now: three will be, and that one will not.
    con::Options options{.goal = Goal{.empty_nodes = 3}};
    CHECK(con::consolidate(cluster, options).plan.goal_reached == false);
    options.open_price = 1000;
    const auto reached = con::consolidate(cluster, options);
    CHECK(reached.plan.goal_reached == true);
    CHECK(reached.stats.goal_after == 3);
    REQUIRE(check(spec, cluster, reached.plan).ok);
    options.goal->empty_nodes = 4;
    CHECK(con::consolidate(cluster, options).plan.goal_reached == false);
}

TEST_CASE("explanations consider that empty nodes may be opened at a price") {
    const auto cluster = Cluster::build(to_clear());
    const auto a = cluster.find_node("a");
    con::Options options{.clear = std::vector{a}};
    CHECK(con::explain(cluster, {}, a, options).fate == con::NodeFate::has_stuck);
    options.open_price = 2000;
    const auto dear = con::explain(cluster, {}, a, options);
    CHECK(dear.fate == con::NodeFate::too_costly);
    CHECK_THAT(dear.text,
               Mentions("node 'a' stays occupied open price of 2000 opening empty nodes of weight 8 "
                        "at least weight of 8 GPUs"));
    options.open_price = 500;
    CHECK(con::explain(cluster, {}, a, options).fate == con::NodeFate::not_worthwhile);
    const auto move = con::explain_move(cluster, cluster.find_task("x"), cluster.find_node("small"), options);
    CHECK(move.fate == con::MoveFate::possible);
    CHECK(move.weight == 0);
    CHECK(move.value_milli == 8000 - 4000);
    CHECK(con::explain_move(cluster, cluster.find_task("x"), cluster.find_node("small")).closed_by ==
          con::ClosedBy::empty);
}

TEST_CASE("a plan that may open nodes is worth no less than one that may not") {
    int opened = 0;
    for (std::uint64_t seed = 0; seed < testing_support::instances(150u); ++seed) {
        Rng rng(seed + 400);
        auto spec = random_cluster(rng, {.min_nodes = 4, .max_nodes = 14, .min_tasks = 6, .max_tasks = 30});
        for (int n = 0; n < 3; ++n) {
            auto empty = spec.nodes[static_cast<std::size_t>(rng.below(spec.nodes.size()))];
            empty.name = "empty" + std::to_string(n);
            spec.nodes.push_back(std::move(empty));
        }
        const auto cluster = Cluster::build(spec);
        con::Options options{.preset = std::array{Preset::ipc, Preset::fast, Preset::best}[seed % 3],
                             .price = std::array<std::int64_t, 2>{0, 600}[seed % 2],
                             .search = {.bound_method = con::BoundMethod::none}};
        if (seed % 4 == 0) {
            options.clear.emplace();
            for (const auto node : cluster.nodes())
                if (rng.chance(0.4)) options.clear->push_back(node);
        }
        INFO("seed " << seed);
        const auto without = con::consolidate(cluster, options);
        options.open_price = std::array<std::int64_t, 2>{1000, 1400}[seed / 2 % 2];
        const auto with = con::consolidate(cluster, options);
        REQUIRE(check(spec, cluster, with.plan).ok);
        CHECK(with.stats.value_milli >= without.stats.value_milli);
        CHECK(with.stats.open_price == *options.open_price);
        opened += !with.plan.opened_nodes.empty();

        con::Options to_goal{.goal = Goal{.empty_nodes = 1 + cluster.node_slots() / 2}};
        const auto closest = con::consolidate(cluster, to_goal);
        to_goal.open_price = 1000;
        CHECK(con::consolidate(cluster, to_goal).stats.goal_after >= closest.stats.goal_after);
    }
    CHECK(opened > testing_support::instances(5));
}
