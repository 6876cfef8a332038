// SPDX-License-Identifier: Apache-2.0
#include "example_clusters.hpp"
#include "support/random_cluster.hpp"

using namespace testing_support;

namespace {

// a and b are full and want to change places; c has room for one of them.
ClusterSpec full_nodes(bool with_room) {
    ClusterSpec spec{.nodes = {node("a"), node("b"), node("c")},
                     .tasks = {task("x", "a", {0, 1, 2, 3, 4, 5, 6, 7}),
                               task("y", "b", {0, 1, 2, 3, 4, 5, 6, 7}), task("z", "c", {0})}};
    if (with_room) spec.nodes[2].gpu_count = 16;
    return spec;
}

}  // namespace

TEST_CASE("moves that wait for each other in a circle hop, or are dropped with the reason") {
    for (const bool with_room : {true, false}) {
        const auto spec = full_nodes(with_room);
        const auto cluster = Cluster::build(spec);
        const std::vector<con::WantedMove> moves{{cluster.find_task("x"), cluster.find_node("b")},
                                                 {cluster.find_task("y"), cluster.find_node("a")}};
        const auto ordered = con::order_into_waves(cluster, moves);
        CHECK(verify::plan(spec, to_spec(ordered.result.plan, cluster)).ok);
        CHECK(ordered.result.stats.hops == (with_room ? 1 : 0));
        CHECK(ordered.result.plan.moves.size() == (with_room ? 3u : 0u));
        REQUIRE(ordered.dropped.size() == (with_room ? 0u : 2u));
        if (with_room) continue;
        CHECK(ordered.dropped[1].move == 1);
        CHECK(ordered.dropped[1].why.obstacle == Obstacle::gpu);
        CHECK_THAT(ordered.dropped[1].why.text,
                   Mentions("task 'y' cannot move to node 'a' (too few idle GPUs)"));
    }
}

TEST_CASE("moves wait for the moves that free their destination, in any order of the list") {
    // x waits for the GPUs of z, which has to wait for y; y goes first and z follows.
    ClusterSpec spec{.nodes = {node("a"), node("b"), node("c"), node("d")},
                     .tasks = {task("x", "a", {0, 1, 2, 3}), task("z", "b", {0, 1, 2, 3, 4}),
                               task("y", "c", {0, 1, 2, 3}), task("l", "d", {0}, true)}};
    const auto cluster = Cluster::build(spec);
    const std::vector<con::WantedMove> moves{{cluster.find_task("x"), cluster.find_node("b")},
                                             {cluster.find_task("z"), cluster.find_node("c")},
                                             {cluster.find_task("y"), cluster.find_node("d")}};
    const auto ordered = con::order_into_waves(cluster, moves);
    CHECK(ordered.dropped.empty());
    CHECK(ordered.result.plan.waves == 3);
    CHECK(ordered.result.plan.vacated_nodes == std::vector{cluster.find_node("a")});
    CHECK(ordered.result.stats.vacated_weight == 8);
    CHECK(verify::plan(spec, to_spec(ordered.result.plan, cluster)).ok);
}

TEST_CASE("GPUs that are named are taken, and no others; of several moves of a task the last counts") {
    const ClusterSpec spec{
        .nodes = {node("a"), node("b"), node("c")},
        .tasks = {task("x", "a", {0}), task("l", "b", {0, 1}, true), task("m", "c", {0}, true)}};
    const auto cluster = Cluster::build(spec);
    const auto x = cluster.find_task("x");
    const auto a = cluster.find_node("a"), b = cluster.find_node("b"), c = cluster.find_node("c");
    const auto order = [&](std::vector<con::WantedMove> moves, const con::Options& options = {}) {
        return con::order_into_waves(cluster, moves, options);
    };
    CHECK(order({{x, b, gpu_bit(7)}}).result.plan.moves[0].gpus == gpu_bit(7));
    CHECK(order({{x, b}}).result.plan.moves[0].gpus != 0);
    const auto held = order({{x, b, gpu_bit(1)}});
    REQUIRE(held.dropped.size() == 1);
    CHECK(held.result.plan.moves.empty());
    CHECK(held.dropped[0].why.obstacle == Obstacle::gpu);
    const auto twice = order({{x, b}, {x, c}});
    CHECK(twice.dropped.empty());
    CHECK(twice.result.plan.moves[0].to == c);
    // a is not to be vacated, so that its last task must stay.
    const auto kept = order({{x, c}}, {.clear = std::vector{b}});
    REQUIRE(kept.dropped.size() == 1);
    CHECK_THAT(kept.dropped[0].why.text, Mentions("task 'x' wave its node must stay in use"));
    CHECK(order({{x, a}}).dropped[0].why.fate == con::MoveFate::is_there);
    CHECK(order({{x, b}}, {.exempt = {b}}).dropped[0].why.closed_by == con::ClosedBy::exempt);
    REQUIRE_THROWS_MESSAGE(order({{x, make_id<NodeId>(9)}}), InvalidInput, "move #0: no node 9");
    REQUIRE_THROWS_MESSAGE(order({{x, b, gpu_bit(9)}}), InvalidInput,
                           "move #0: names GPUs node 'b' lacks; has 8");
}

TEST_CASE("any moves become a valid plan, and each is made or dropped") {
    std::size_t made = 0, dropped = 0;
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
        Rng rng(seed);
        const auto spec =
            random_cluster(rng, {.min_nodes = 3, .max_nodes = 12, .min_tasks = 5, .max_tasks = 40});
        const auto cluster = Cluster::build(spec);
        std::vector<con::WantedMove> moves;
        for (const auto task : cluster.tasks())
            if (rng.below(2) == 0) moves.push_back({task, make_id<NodeId>(rng.below(cluster.node_slots()))});
        INFO("seed " << seed);
        const auto ordered = con::order_into_waves(cluster, moves);
        REQUIRE(verify::plan(spec, to_spec(ordered.result.plan, cluster)).ok);
        const auto after = apply(cluster, ordered.result.plan);
        for (std::size_t i = 0; i < moves.size(); ++i) {
            const bool left = std::any_of(ordered.dropped.begin(), ordered.dropped.end(),
                                          [&](const auto& d) { return d.move == i; });
            const bool there = after.is_placed(moves[i].task) && after.node_of(moves[i].task) == moves[i].to;
            const bool was_there =
                cluster.is_placed(moves[i].task) && cluster.node_of(moves[i].task) == moves[i].to;
            REQUIRE(left == (!there || was_there));
            made += left ? 0 : 1;
            dropped += left ? 1 : 0;
        }
    }
    CHECK(made > 100);
    CHECK(dropped > 100);
}

TEST_CASE("an impossible move does not block other moves") {
    // x and y change places by way of c, which is where w, too large for it, is to go.
    auto spec = full_nodes(true);
    spec.nodes.push_back(node("d", 32));
    std::vector<int> gpus(24);
    for (int g = 0; g < 24; ++g) gpus[static_cast<std::size_t>(g)] = g;
    spec.tasks.push_back(task("w", "d", gpus));
    const auto cluster = Cluster::build(spec);
    std::vector<con::WantedMove> moves{{cluster.find_task("x"), cluster.find_node("b")},
                                       {cluster.find_task("y"), cluster.find_node("a")},
                                       {cluster.find_task("w"), cluster.find_node("c")}};
    for (int first = 0; first < 3; ++first) {
        const auto ordered = con::order_into_waves(cluster, moves);
        CHECK(verify::plan(spec, to_spec(ordered.result.plan, cluster)).ok);
        CHECK(ordered.result.plan.moves.size() == 3);
        REQUIRE(ordered.dropped.size() == 1);
        const auto& dropped = ordered.dropped[0];
        CHECK(moves[dropped.move].task == cluster.find_task("w"));
        CHECK(dropped.why.fate == con::MoveFate::obstacle);
        CHECK(dropped.why.obstacle == Obstacle::gpu);
        std::rotate(moves.begin(), moves.begin() + 1, moves.end());
    }
}

TEST_CASE("a dropped move names its constraint, even if the other moves vacate its node") {
    // x leaves a, but y is larger than a.
    const ClusterSpec spec{
        .nodes = {node("a", 4), node("b", 8), node("c")},
        .tasks = {task("x", "a", {0}), task("y", "b", {0, 1, 2, 3, 4, 5}), task("l", "c", {0}, true)}};
    const auto cluster = Cluster::build(spec);
    const auto ordered = con::order_into_waves(
        cluster, std::vector<con::WantedMove>{{cluster.find_task("x"), cluster.find_node("c")},
                                              {cluster.find_task("y"), cluster.find_node("a")}});
    CHECK(ordered.result.plan.vacated_nodes == std::vector{cluster.find_node("a")});
    REQUIRE(ordered.dropped.size() == 1);
    CHECK(ordered.dropped[0].why.fate == con::MoveFate::obstacle);
    CHECK_THAT(ordered.dropped[0].why.text, Mentions("task 'y' cannot move to node 'a' (too few idle GPUs)"));
}

TEST_CASE("a move that only lacks its turn reports it") {
    // c alone may be vacated, so that a must stay in use.
    const ClusterSpec spec{.nodes = {node("a"), node("b"), node("c")},
                           .tasks = {task("x", "a", {0}), task("l", "b", {0}, true), task("y", "c", {0})}};
    const auto cluster = Cluster::build(spec);
    con::Options options{.clear = std::vector{cluster.find_node("c")}};
    const auto ordered = con::order_into_waves(
        cluster, std::vector<con::WantedMove>{{cluster.find_task("x"), cluster.find_node("b")}}, options);
    CHECK(ordered.result.plan.moves.empty());
    REQUIRE(ordered.dropped.size() == 1);
    CHECK(ordered.dropped[0].why.fate == con::MoveFate::no_turn);
    CHECK_THAT(ordered.dropped[0].why.text,
               Mentions("task 'x' fits into no wave to node 'b'; its node must stay in use"));
}
