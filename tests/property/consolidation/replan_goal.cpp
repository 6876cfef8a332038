// SPDX-License-Identifier: Apache-2.0
// Planning again with a goal, on generated clusters.
#include "support/catch.hpp"

#include <gpusched/consolidation/consolidation.hpp>
#include <gpusched/sim/generator.hpp>
#include <gpusched/verify/plan.hpp>

using namespace gpusched;

namespace replan_goal_tests {

using Pairs = std::set<std::pair<std::string, std::string>>;

Pairs pairs(const PlanSpec& plan) {
    Pairs out;
    for (const auto& move : plan.moves) out.emplace(move.task, move.to);
    return out;
}

std::size_t common(const PlanSpec& a, const PlanSpec& b) {
    const auto first = pairs(a), second = pairs(b);
    return static_cast<std::size_t>(
        std::ranges::count_if(first, [&](const auto& move) { return second.contains(move); }));
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
        CHECK(verify::plan(spec, plan).ok);
        // Every move of the last plan is either made or dropped with a reason.
        const auto dropped = consolidation::dropped_moves(later, last, plan);
        CHECK(common(last, plan) + dropped.size() == pairs(last).size());
        for (const auto& one : dropped)
            CHECK((one.reason == "it no longer exists") == gone.contains(last.moves[one.move].task));
    }
}

}  // namespace replan_goal_tests
