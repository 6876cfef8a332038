// SPDX-License-Identifier: Apache-2.0
// The presets as sets of policies, their switches, and the options beside them.
#include "example_clusters.hpp"

using namespace testing_support;

TEST_CASE("limits of the options reach every acceptance that takes them, in one way") {
    const auto cluster = Cluster::build(generated());
    std::vector<NodeId> half;
    for (const auto node : cluster.nodes())
        if (index(node) % 2 == 0) half.push_back(node);
    for (const con::Options& options : {con::Options{.search = {.max_others = 0}},
                                        con::Options{.price = 2000}, con::Options{.clear = half}}) {
        const auto by_preset = con::consolidate(cluster, options);
        CHECK(con::consolidate(cluster, con::presets::best(), options).plan == by_preset.plan);
    }
    const con::PriceLimit mine{.others = 5, .price = 2};
    CHECK(mine.with_limits({}).others == 5);
    CHECK(mine.with_limits({}).price == con::Options{}.price);
    CHECK(mine.with_limits({.price = 7, .search = {.max_others = 3}}).price == 7);
}

TEST_CASE("options without effect next to user-defined policies are refused") {
    const auto cluster = Cluster::build(figure_15());
    const auto refused = [&](const auto& policies, const con::Options& options, const std::string& message) {
        INFO(message);
        REQUIRE_THROWS_MESSAGE(con::validate(options, cluster, policies), InvalidInput, message);
        REQUIRE_THROWS_MESSAGE(con::consolidate(cluster, policies, options), InvalidInput, message);
    };
    const auto best = con::presets::best();
    refused(best, {.preset = con::Preset::fast}, "preset: fast; expected default policies of your own");
    refused(best, {.objective = con::Objective::nodes},
            "objective: nodes; expected default policies of your own node_weight");
    const auto all = con::with_acceptance(best, con::AcceptAll{});
    refused(all, {.search = {.max_others = 3}},
            "max_others: 3; expected default acceptance takes no limits, PriceLimit");
    refused(con::AnyPolicies(all), {.price = 2}, "price: 2; expected default acceptance takes no limits");
    con::validate({.price = 2, .search = {.max_others = 3}}, cluster, best);
    con::validate({.search = {.max_others = 3}}, cluster, con::AnyPolicies(best));
}

TEST_CASE("fast ends after one round, best goes on while that gains") {
    const auto cluster = Cluster::build(generated());
    CHECK(con::consolidate(cluster, {.preset = con::Preset::fast}).stats.rounds.size() == 1);
    CHECK(con::consolidate(cluster, {.preset = con::Preset::best}).stats.rounds.size() > 1);
    auto policies = con::presets::fast();
    policies.switches.most_rounds = 2;
    CHECK(con::consolidate(cluster, policies).stats.rounds.size() == 2);
    CHECK(con::consolidate(cluster, policies, {.search = {.rounds = 1}}).stats.rounds.size() == 1);
}

TEST_CASE("a search of one round goes to its full depth") {
    const auto cluster = Cluster::build(figure_15());
    CHECK(con::consolidate(cluster, con::presets::best(), {.search = {.rounds = 1}}).plan.moves.size() == 3);
}

TEST_CASE("failed requests are remembered unless the caller disables it") {
    const auto cluster = Cluster::build(generated());
    auto policies = con::presets::ipc();
    CHECK(con::consolidate(cluster, policies).stats.requests_dominated > 0);
    policies.switches.remember_failures = false;
    CHECK(con::consolidate(cluster, policies).stats.requests_dominated == 0);
}

TEST_CASE("a result becomes a document with its statistics") {
    const auto cluster = Cluster::build(figure_15());
    const auto result = con::consolidate(cluster);
    const auto spec = to_spec(result.plan, cluster, con::to_stats(result.stats));
    CHECK(spec.moves.size() == 3);
    CHECK(spec.stats.at("moves") == 3);
    CHECK(spec.stats.at("vacated_gpus") == 4);
    CHECK(spec.stats.at("vacated_weight") == 4);
    CHECK(spec.stats.at("relocation_cost") == 3);
    CHECK(spec.stats.at("value_milli") == 4000 - 3 * spec.stats.at("price"));
    CHECK(spec.stats.at("rounds") == static_cast<double>(result.stats.rounds.size()));
    CHECK(spec.stats.at("round_1_vacated_nodes") == 1);
    CHECK(spec.stats.at("round_1_moves") == 3);
    CHECK(con::rounds_of(spec) == result.stats.rounds);
    CHECK(con::rounds_of({.stats = {{"moves", 3}, {"round_2_moves", 1}, {"round_1_moves", -1e300}}}).empty());
}
