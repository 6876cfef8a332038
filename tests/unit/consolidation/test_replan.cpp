// SPDX-License-Identifier: Apache-2.0
// Planning again from an earlier plan, with a goal.
#include "support/catch.hpp"

#include <gpusched/consolidation/consolidate.hpp>
#include <gpusched/consolidation/replan.hpp>
#include <gpusched/verify/plan.hpp>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

using namespace gpusched;

namespace replan_tests {

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

/// Four nodes of 8 GPUs with one task of 2 on each, and one task of 1 more on c and d.
ClusterSpec four_nodes() {
    ClusterSpec spec;
    for (const auto* name : {"a", "b", "c", "d"}) {
        spec.nodes.push_back({.name = name, .gpu_model = "NVIDIA-A", .gpu_count = 8, .cpu_milli = 64'000});
        spec.tasks.push_back({.name = std::string("on-") + name, .gpu_count = 2});
        spec.tasks.back().node = name;
        spec.tasks.back().assign_gpus = true;
    }
    for (const auto* name : {"c", "d"}) {
        spec.tasks.push_back({.name = std::string("more-") + name, .gpu_count = 1});
        spec.tasks.back().node = name;
        spec.tasks.back().assign_gpus = true;
    }
    return spec;
}

consolidation::Options with_goal(std::int64_t nodes) {
    consolidation::Options options;
    options.goal = Goal{.empty_nodes = nodes, .gpu_model = "a"};
    return options;
}

TEST_CASE("A goal keeps the moves of the last plan that still serve it", "[replan]") {
    const auto cluster = Cluster::build(four_nodes());
    // An unusual plan, which the search would not find: on-a moves to d.
    const PlanSpec last{.waves = 1, .moves = {{"on-a", "a", "d", {3, 4}, 0}}, .vacated_nodes = {"a"}};
    const auto result = consolidation::replan(cluster, last, with_goal(1));
    const auto plan = to_spec(result.plan, cluster);
    CHECK(result.plan.goal_reached == true);
    CHECK(pairs(plan) == Pairs{{"on-a", "d"}});
    CHECK(plan.goal->gpu_model == "NVIDIA-A");  // the name of the cluster
    CHECK(verify::plan(four_nodes(), plan).ok);

    // The goal grows: the search continues from there.
    const auto more = to_spec(consolidation::replan(cluster, last, with_goal(2)).plan, cluster);
    CHECK(more.goal_reached == true);
    CHECK(common(more, last) == 1);
    CHECK(verify::plan(four_nodes(), more).ok);
    // It is reached already: no moves.
    auto empty = four_nodes();
    empty.nodes.push_back({.name = "e", .gpu_model = "NVIDIA-A", .gpu_count = 8, .cpu_milli = 64'000});
    CHECK(consolidation::replan(Cluster::build(empty), last, with_goal(1)).plan.moves.empty());
}

TEST_CASE("Moves for slots that the goal no longer needs are left out", "[replan]") {
    auto spec = four_nodes();
    spec.nodes.push_back({.name = "e", .gpu_model = "NVIDIA-A", .gpu_count = 8, .cpu_milli = 64'000});
    spec.tasks.push_back({.name = "on-e", .gpu_count = 5});
    spec.tasks.back().node = "e";
    spec.tasks.back().assign_gpus = true;
    const auto cluster = Cluster::build(spec);
    const PlanSpec last{.waves = 1,
                        .moves = {{"more-c", "c", "e", {5}, 0}, {"more-d", "d", "e", {6}, 0}},
                        .vacated_nodes = {}};
    consolidation::Options options;
    options.goal = Goal{.slots = SlotShape{.gpu_count = 6}, .count = 3};  // a and b have one each
    const auto plan = to_spec(consolidation::replan(cluster, last, options).plan, cluster);
    CHECK(plan.goal_reached == true);
    CHECK(pairs(plan) == Pairs{{"more-c", "e"}});
    CHECK(verify::plan(spec, plan).ok);
}

TEST_CASE("Reasons for moves that are not made again", "[replan]") {
    auto spec = four_nodes();
    spec.tasks[1].gpu_count = 6;  // on-b
    spec.tasks[4].node.reset();   // more-c
    spec.tasks[4].assign_gpus = false;
    const auto cluster = Cluster::build(spec);
    const PlanSpec last{.waves = 1,
                        .moves = {{"gone", "a", "b", {}, 0},
                                  {"more-c", "c", "b", {}, 0},
                                  {"on-a", "a", "z", {}, 0},
                                  {"on-b", "a", "b", {}, 0},
                                  {"on-c", "c", "b", {}, 0},
                                  {"more-d", "d", "b", {}, 0},
                                  {"on-d", "d", "c", {}, 0}},
                        .vacated_nodes = {}};
    const PlanSpec now{.waves = 1,
                       .moves = {{"on-c", "c", "b", {6, 7}, 0}, {"on-d", "d", "a", {2, 3}, 0}},
                       .vacated_nodes = {}};
    std::vector<std::string> reasons;
    for (const auto& one : consolidation::dropped_moves(cluster, last, now)) reasons.push_back(one.reason);
    CHECK(reasons == std::vector<std::string>{"it no longer exists", "it is pending",
                                              "node 'z' no longer exists", "it is already there",
                                              "task 'more-d' cannot move to node 'b' (too few idle GPUs)",
                                              "it moves to node 'a' instead"});
}

}  // namespace replan_tests
