// SPDX-License-Identifier: Apache-2.0
// What a node is worth against what its moves cost, and the limit on moves of others.
#include "example_clusters.hpp"

using namespace testing_support;

TEST_CASE("max_others limits the moves of a preset for one node") {
    const auto cluster = Cluster::build(figure_15());  // one task of the node, two of others
    const auto preset = GENERATE(con::Preset::ipc, con::Preset::best);
    CHECK(con::consolidate(cluster, {.preset = preset, .search = {.max_others = 1}}).plan.moves.empty());
    CHECK(con::consolidate(cluster, {.preset = preset, .search = {.max_others = 2}}).plan.moves.size() == 3);
}

TEST_CASE("a price limit compares the worth of a node with the cost of its moves") {
    con::ChainSet node{.gain = 8, .tasks = 2, .moves = 12, .cost = 16};
    CHECK(con::PriceLimit{}(node));
    CHECK(con::PriceLimit{.price = 500}(node));  // 8 GPUs, and 16 x half a GPU
    CHECK_FALSE(con::PriceLimit{.price = 501}(node));
    CHECK(con::PriceLimit{.others = 10}(node));
    CHECK_FALSE(con::PriceLimit{.others = 9}(node));
    node = {.gain = 0, .tasks = 2, .moves = 3, .cost = 3};  // worth nothing
    CHECK(con::PriceLimit{}(node));
    CHECK_FALSE(con::PriceLimit{.price = 1}(node));
    // Nothing overflows.
    constexpr auto most = std::numeric_limits<std::int64_t>::max();
    CHECK(con::is_worth(most, most / 8, 1));
    CHECK_FALSE(con::is_worth(1, most, con::highest_price));
    CHECK(con::value_milli(3, 4, 250) == 2000);
}

TEST_CASE("a price trades GPUs for moves") {
    const auto spec = sim::generate_cluster({.nodes = 2000, .seed = 5, .load = 1.15});
    const auto cluster = Cluster::build(spec);
    const auto preset = GENERATE(con::Preset::ipc, con::Preset::fast, con::Preset::best);
    const auto run = [&](std::int64_t price) {
        return con::consolidate(cluster, {.preset = preset, .price = price});
    };
    const auto all = run(0), some = run(1500), few = run(4000), nothing = run(con::highest_price);
    const auto cost_of_each = [](const con::Result& r) {
        return static_cast<double>(r.stats.relocation_cost) / static_cast<double>(r.stats.vacated_gpus);
    };
    CHECK(few.stats.vacated_gpus < some.stats.vacated_gpus);
    CHECK(some.stats.vacated_gpus < all.stats.vacated_gpus);
    CHECK(cost_of_each(few) < cost_of_each(some));
    CHECK(cost_of_each(some) < cost_of_each(all));
    CHECK(nothing.plan.moves.empty());
    for (const auto* result : {&all, &some, &few}) {
        CHECK(check(spec, cluster, result->plan).ok);
        const auto& stats = result->stats;
        CHECK(stats.vacated_weight == stats.vacated_gpus);
        CHECK(stats.value_milli == 1000 * stats.vacated_gpus - stats.price * stats.relocation_cost);
        CHECK(stats.value_milli >= 0);
    }
    CHECK(some.stats.price == 1500);
}

TEST_CASE("the cost counts tasks with another final node") {
    auto spec = figure_15();
    for (auto& t : spec.tasks) t.move_cost = 3;
    const auto cluster = Cluster::build(spec);
    const auto preset = GENERATE(con::Preset::ipc, con::Preset::best);
    // Three moves of cost 3 for four GPUs.
    const auto result = con::consolidate(cluster, {.preset = preset, .price = 444});
    CHECK(result.stats.relocation_cost == 9);
    CHECK(result.stats.value_milli == 4000 - 9 * 444);
    CHECK(con::consolidate(cluster, {.preset = preset, .price = 445}).plan.moves.empty());
    CHECK(con::consolidate(cluster, {.preset = preset, .price = 111, .objective = con::Objective::nodes})
              .stats.value_milli == 1);
    CHECK(con::consolidate(cluster, {.preset = preset, .price = 112, .objective = con::Objective::nodes})
              .plan.moves.empty());
}
