// SPDX-License-Identifier: Apache-2.0
// Replanning on random clusters after random changes: valid, about as good as a new plan, and most of the last plan stays.
#include "support/instances.hpp"
#include "support/plans.hpp"
#include "support/random_cluster.hpp"

#include <gpusched/consolidation/consolidation.hpp>
#include <gpusched/sim/generator.hpp>

using namespace gpusched;
using testing_support::common;
using testing_support::instances;
using testing_support::pairs;

namespace {

// Removes so many tasks; tasks that go and nodes that are cordoned both make parts of an earlier plan impossible.
ClusterSpec changed(ClusterSpec spec, int changes, Rng& rng) {
    for (int i = 0; i < changes && !spec.tasks.empty(); ++i)
        spec.tasks.erase(spec.tasks.begin() + static_cast<std::ptrdiff_t>(rng.below(spec.tasks.size())));
    spec.nodes[rng.below(spec.nodes.size())].schedulable = false;
    for (auto& budget : spec.budgets)  // names of tasks that are gone
        std::erase_if(budget.tasks, [&](const std::string& name) {
            return std::none_of(spec.tasks.begin(), spec.tasks.end(),
                                [&](const TaskSpec& task) { return task.name == name; });
        });
    return spec;
}

}  // namespace

TEST_CASE("replanned plans are valid after any change") {
    std::size_t moved = 0, as_planned = 0;
    for (std::uint64_t seed = 0; seed < instances<std::uint64_t>(3000); ++seed) {
        Rng rng(seed);
        const auto spec = testing_support::random_cluster(
            rng, {.budgets = seed % 3 == 2 ? 0.3 : 0, .extras = seed % 4 == 3 ? 0.3 : 0});
        const auto cluster = Cluster::build(spec);
        consolidation::Options options{.seed = seed, .search = {.record_chains = seed % 2 == 1}};
        const auto last = to_spec(consolidation::consolidate(cluster, options).plan, cluster);

        const auto now = seed % 5 == 0 ? spec : changed(spec, 2, rng);
        const auto later = Cluster::build(now);
        if (seed % 7 == 0) options.max_moves = 3;
        if (seed % 11 == 0) options.price = 500;
        const auto result = consolidation::replan(later, last, options);
        const auto plan = to_spec(result.plan, later);
        const auto report = testing_support::require_valid(now, plan);
        REQUIRE(report.vacated_gpus == result.stats.vacated_gpus);
        if (options.max_moves) REQUIRE(plan.moves.size() <= 3);
        moved += plan.moves.size();
        as_planned += common(last, plan);
    }
    CHECK(moved > instances<std::size_t>(1000));
    CHECK(as_planned > moved / 2);
}

TEST_CASE("a replanned plan is worth as much as a new plan, and follows the last one") {
    std::int64_t anew = 0, again = 0;
    std::size_t moves = 0, as_planned = 0;
    for (std::uint64_t seed = 0; seed < instances<std::uint64_t>(10); ++seed) {
        const auto spec = sim::generate_cluster({.nodes = 500, .seed = seed});
        const auto cluster = Cluster::build(spec);
        const consolidation::Options options{.seed = seed, .search = {.record_chains = seed % 2 == 1}};
        const auto last = to_spec(consolidation::consolidate(cluster, options).plan, cluster);
        Rng rng(seed);
        const auto now = changed(spec, 20, rng);
        const auto later = Cluster::build(now);
        anew += consolidation::consolidate(later, options).stats.vacated_gpus;
        const auto result = consolidation::replan(later, last, options);
        again += result.stats.vacated_gpus;
        const auto plan = to_spec(result.plan, later);
        moves += plan.moves.size();
        as_planned += common(last, plan);
    }
    INFO(again << " GPUs of " << anew << ", " << as_planned << " moves of " << moves << " as planned");
    CHECK(again * 1000 >= anew * 995);  // on so few nodes both are tried
    CHECK(as_planned * 100 >= moves * 60);
}

TEST_CASE("if nothing has changed, no plan is worth less than the last one") {
    int better = 0, equal = 0;
    const auto compare = [&](const Cluster& cluster, const consolidation::Options& options) {
        const auto last = consolidation::consolidate(cluster, options);
        const auto again = consolidation::replan(cluster, to_spec(last.plan, cluster), options);
        REQUIRE(again.stats.value_milli >= last.stats.value_milli);
        testing_support::require_valid(cluster.to_spec(), cluster, again.plan);
        better += again.stats.value_milli > last.stats.value_milli ? 1 : 0;
        equal += again.stats.value_milli == last.stats.value_milli && last.stats.value_milli > 0 ? 1 : 0;
    };
    for (std::uint64_t seed = 0; seed < instances<std::uint64_t>(60); ++seed) {
        INFO("generated, seed " << seed);
        const auto cluster = Cluster::build(sim::generate_cluster({.nodes = 60, .seed = seed}));
        consolidation::Options options{
            .seed = seed, .threads = 1, .search = {.record_chains = seed % 2 == 1}};
        if (seed % 3 == 1) options.price = 1000;
        if (seed % 3 == 2) options.open_price = 1000;
        compare(cluster, options);
    }
    for (std::uint64_t seed = 0; seed < instances<std::uint64_t>(1000); ++seed) {
        INFO("odd, seed " << seed);
        Rng rng(seed);
        const auto cluster = Cluster::build(testing_support::random_cluster(
            rng, {.budgets = seed % 3 == 2 ? 0.3 : 0, .extras = seed % 4 == 3 ? 0.3 : 0}));
        compare(cluster, {.seed = seed, .threads = 1});
    }
    INFO(better << " better, " << equal << " equal");
    CHECK(equal > instances(300));
}

TEST_CASE("the rest of a partly executed plan is planned again") {
    std::int64_t again = 0, anew = 0;  // vacated nodes of the rest
    for (std::uint64_t seed = 0; seed < instances<std::uint64_t>(1000); ++seed) {
        Rng rng(seed);
        const auto spec = testing_support::random_cluster(rng, {});
        const auto cluster = Cluster::build(spec);
        const auto first = consolidation::consolidate(cluster, {.seed = seed});
        if (first.plan.waves < 2) continue;
        auto begun = first.plan;  // its first wave alone
        std::erase_if(begun.moves, [](const Move& move) { return move.wave > 0; });
        begun.waves = 1;
        const auto half_way = apply(cluster, begun);
        const auto rest = consolidation::replan(half_way, to_spec(first.plan, cluster), {.seed = seed});
        INFO("seed " << seed);
        testing_support::require_valid(half_way.to_spec(), half_way, rest.plan);
        again += rest.stats.vacated_nodes;
        anew += consolidation::consolidate(half_way, {.seed = seed}).stats.vacated_nodes;
    }
    INFO(again << " of " << anew);
    CHECK(anew > instances(20));
    CHECK(again * 1000 >= anew * 995);
}

TEST_CASE("an earlier plan of other names changes nothing") {
    const auto spec = sim::generate_cluster({.nodes = 60, .seed = 3});
    const auto cluster = Cluster::build(spec);
    const PlanSpec strange{.waves = 1,
                           .moves = {{.task = "nobody", .from = "nowhere", .to = "elsewhere"}},
                           .vacated_nodes = {"nowhere"}};
    CHECK(consolidation::replan(cluster, strange).plan == consolidation::replan(cluster, {}).plan);
    CHECK(consolidation::replan(cluster, {}).stats.vacated_gpus > 0);
}

TEST_CASE("With a goal, planning again is at least as close to it as a new plan", "[replan]") {
    for (std::uint64_t seed = 0; seed < 6; ++seed) {
        const auto cluster = Cluster::build(sim::generate_cluster({.nodes = 60, .seed = seed}));
        consolidation::Options options;
        options.goal = Goal{.empty_nodes = 6};
        const auto last = to_spec(consolidation::consolidate(cluster, options).plan, cluster);
        auto spec = cluster.to_spec();
        // Two tasks of the last plan vanish.
        std::set<std::string> gone;
        for (std::size_t i = 0; i < std::min<std::size_t>(2, last.moves.size()); ++i)
            gone.insert(last.moves[i].task);
        std::erase_if(spec.tasks, [&](const TaskSpec& task) { return gone.contains(task.name); });
        const auto later = Cluster::build(spec);
        const auto again = consolidation::replan(later, last, options);
        const auto fresh = consolidation::consolidate(later, options);
        INFO("seed " << seed);
        CHECK(std::min<std::int64_t>(again.stats.goal_after, 6) >=
              std::min<std::int64_t>(fresh.stats.goal_after, 6));
        CHECK(0.9 * static_cast<double>(again.stats.relocation_cost) <=
              static_cast<double>(fresh.stats.relocation_cost));
        const auto plan = to_spec(again.plan, later);
        testing_support::require_valid(spec, plan);
        // Every move of the last plan is either made or dropped with a reason.
        const auto dropped = consolidation::dropped_moves(later, last, plan);
        CHECK(common(last, plan) + dropped.size() == pairs(last).size());
        for (const auto& one : dropped)
            CHECK((one.reason == "it no longer exists") == gone.contains(last.moves[one.move].task));
    }
}
