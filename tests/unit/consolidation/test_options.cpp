// SPDX-License-Identifier: Apache-2.0
#include "example_clusters.hpp"

using namespace testing_support;

TEST_CASE("options out of range are rejected by name, value and expectation") {
    const auto cluster = Cluster::build(figure_15());
    const auto rejects = [&](const con::Options& options, const std::string& message) {
        INFO(message);
        REQUIRE_THROWS_MESSAGE(con::consolidate(cluster, options), InvalidInput, message);
        REQUIRE_THROWS_MESSAGE(con::bound(cluster, con::BoundMethod::counting, options), InvalidInput,
                               message);
    };
    rejects({.preset = static_cast<con::Preset>(7)}, "preset: 7; expected ipc, fast, best");
    rejects({.objective = static_cast<con::Objective>(2)}, "objective: 2; expected gpus, nodes");
    rejects({.search = {.bound_method = static_cast<con::BoundMethod>(9)}},
            "bound_method: 9; expected none, counting, lp");
    rejects({.search = {.partition_size = 0}}, "partition_size 0 1");
    rejects({.search = {.depth = 0}}, "depth 0 1 16");
    rejects({.search = {.depth = 17}}, "depth 17 1 16");
    rejects({.search = {.rounds = 0}}, "rounds 0 1");
    rejects({.time_limit = -1.0}, "time_limit -1 0");
    rejects({.time_limit = std::numeric_limits<double>::quiet_NaN()}, "time_limit nan 0");
    rejects({.search = {.polish_time = -0.5}}, "polish_time -0.5");
    rejects({.max_moves = -1}, "max_moves -1 0");
    rejects({.max_move_cost = -2}, "max_move_cost -2 0");
    rejects({.search = {.max_others = -1}}, "max_others -1 0");
    rejects({.price = -1}, "price -1 0 1000000000");
    rejects({.price = con::highest_price + 1}, "price 1000000001 0 1000000000");
    rejects({.limits = {.max_disrupted = -3}}, "max_disrupted -3 0");
    rejects({.limits = {.max_moves_per_wave = 0}}, "max_moves_per_wave 0 1");
    rejects({.limits = {.max_moves_per_node = 0}}, "max_moves_per_node 0 1");
    rejects({.clear = std::vector{make_id<NodeId>(4)}}, "clear: no node 4; expected less than 4");
    rejects({.exempt = {make_id<NodeId>(9)}}, "exempt: no node 9; expected less than 4");
    const auto node = make_id<NodeId>(2);
    rejects({.clear = std::vector{make_id<NodeId>(1), node}, .exempt = {node, make_id<NodeId>(0)}},
            "clear: " + gpusched::quoted(cluster.name(node)) + "; expected not in exempt");
}

TEST_CASE("there is no bound by no method") {
    REQUIRE_THROWS_MESSAGE(con::bound(Cluster(), con::BoundMethod::none), InvalidInput,
                           "method: none; expected counting lp");
}

TEST_CASE("all problems of the options are reported together") {
    CHECK_THAT(testing_support::problems_in<InvalidInput>(
                   [&] { con::validate({.search = {.depth = 0, .rounds = -1}}, Cluster()); }),
               MentionsEach({"depth: 0;", "rounds: -1;"}));
}
