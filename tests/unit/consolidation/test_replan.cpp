// SPDX-License-Identifier: Apache-2.0
// Planning again from an earlier plan, with a goal.
#include "support/plans.hpp"

#include <gpusched/consolidation/consolidation.hpp>
#include <gpusched/verify/plan.hpp>

using namespace gpusched;
using testing_support::common;
using testing_support::Pairs;
using testing_support::pairs;

namespace replan_tests {

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

/// A task on some GPUs of a node.
TaskSpec placed(std::string name, std::string node, std::vector<int> gpus) {
    TaskSpec task{.name = std::move(name),
                  .gpu_count = static_cast<std::int64_t>(gpus.size()),
                  .node = std::move(node),
                  .gpus = std::move(gpus)};
    return task;
}

ClusterSpec nodes_of_eight(int count) {
    ClusterSpec spec;
    for (int i = 0; i < count; ++i)
        spec.nodes.push_back({.name = "n" + std::to_string(i), .gpu_count = 8, .cpu_milli = 64'000});
    return spec;
}

TEST_CASE("Moves repeated for slots keep to the limits", "[replan]") {
    auto spec = nodes_of_eight(3);
    spec.tasks = {placed("a", "n0", {0}), placed("b", "n0", {1}), placed("z", "n1", {0, 1})};
    const auto cluster = Cluster::build(spec);
    const PlanSpec last{
        .waves = 1, .moves = {{"a", "n0", "n1", {2}, 0}, {"b", "n0", "n1", {3}, 0}}, .vacated_nodes = {"n0"}};
    struct Case {
        std::optional<std::int64_t> moves, cost;
        bool reached;
    };
    for (const auto& [moves, cost, reached] :
         {Case{0, {}, false}, Case{{}, 0, false}, Case{1, 1, true}, Case{2, 2, true}}) {
        consolidation::Options options;
        options.goal = Goal{.slots = SlotShape{.gpu_count = 8}, .count = 2};
        options.max_moves = moves;
        options.max_move_cost = cost;
        const auto found = consolidation::replan(cluster, last, options);
        INFO(moves.value_or(-1) << " moves, cost " << cost.value_or(-1));
        CHECK(found.plan.goal_reached == reached);
        CHECK(found.stats.moves <= moves.value_or(2));
        CHECK(found.stats.move_cost <= cost.value_or(2));
        CHECK(verify::plan(spec, to_spec(found.plan, cluster)).ok);
    }
}

TEST_CASE("Moves for slots start from the first places of repeated moves", "[replan]") {
    auto spec = nodes_of_eight(5);
    spec.tasks = {
        placed("t0", "n1", {0, 1}),       placed("t1", "n2", {0, 1}),       placed("t3", "n0", {0}),
        placed("t4", "n1", {2, 3, 4, 5}), placed("t5", "n2", {2, 3, 4, 5}), placed("t7", "n3", {0, 1, 2, 3}),
        placed("t8", "n4", {0}),          placed("new0", "n3", {4}),        placed("new1", "n2", {6})};
    const auto cluster = Cluster::build(spec);
    const PlanSpec last{.waves = 1,
                        .moves = {{"t3", "n0", "n1", {6}, 0}, {"t8", "n4", "n1", {7}, 0}},
                        .vacated_nodes = {"n0", "n4"}};
    consolidation::Options options;
    options.goal = Goal{.slots = SlotShape{.gpu_count = 4}, .count = 5};
    const auto plan = to_spec(consolidation::replan(cluster, last, options).plan, cluster);
    CHECK(plan.goal_reached == true);
    CHECK(verify::plan(spec, plan).ok);
    std::set<std::string> moved;
    for (const auto& move : plan.moves) moved.insert(move.task);
    CHECK(moved.size() == plan.moves.size());  // each task once
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
                                              "it cannot move to node 'b' (too few idle GPUs)",
                                              "it moves to node 'a' instead"});
    // A name cannot cut a reason short.
    auto odd = four_nodes();
    for (auto& task : odd.tasks)
        if (task.name == "on-a") task.name = "on; the move adds a";
    odd.tasks[1].gpu_count = 7;  // on-b
    const PlanSpec moves{.waves = 1,
                         .moves = {{"on; the move adds a", "a", "b", {}, 0}, {"more-c", "c", "d", {}, 0}},
                         .vacated_nodes = {}};
    reasons.clear();
    for (const auto& one : consolidation::dropped_moves(Cluster::build(odd), moves, PlanSpec{}))
        reasons.push_back(one.reason);
    CHECK(reasons == std::vector<std::string>{"it cannot move to node 'b' (too few idle GPUs)",
                                              "possible, but not in the new plan"});
}

}  // namespace replan_tests
