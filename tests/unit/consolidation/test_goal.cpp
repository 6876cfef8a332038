// SPDX-License-Identifier: Apache-2.0
#include "example_clusters.hpp"
#include "support/instances.hpp"
#include "support/random_cluster.hpp"

using namespace testing_support;

namespace {

// Three nodes with 1, 2 and 3 single-GPU tasks, and one with locked tasks and four free GPUs.
ClusterSpec stairs() {
    return {.nodes = {node("a"), node("b"), node("c"), node("d"), node("e")},
            .tasks = {task("a0", "a", {0}), task("b0", "b", {0}), task("b1", "b", {1}), task("c0", "c", {0}),
                      task("c1", "c", {1}), task("c2", "c", {2}), task("l", "d", {0, 1, 2, 3}, true)}};
}

con::Options for_nodes(std::int64_t count, std::string gpu_model = {}) {
    return {.goal = Goal{.empty_nodes = count, .gpu_model = std::move(gpu_model)}};
}
con::Options for_slots(int gpus, std::int64_t count) {
    return {.goal = Goal{.slots = SlotShape{.gpu_count = gpus}, .count = count}};
}

}  // namespace

TEST_CASE("a goal is reached by the cheapest nodes") {
    const auto spec = stairs();
    const auto cluster = Cluster::build(spec);
    // e is empty, so each number needs one node fewer; of a to c the one with the fewest tasks goes first.
    const std::int64_t moves[] = {0, 1, 3};
    for (std::int64_t count = 1; count <= 3; ++count) {
        const auto found = con::consolidate(cluster, for_nodes(count, "H20"));
        INFO("count " << count);
        CHECK(found.plan.goal == for_nodes(count, "H20").goal);
        CHECK(found.plan.goal_reached == true);
        CHECK(found.stats.goal_before == 1);
        CHECK(found.stats.goal_after == count);
        CHECK(found.stats.moves == moves[count - 1]);
        CHECK(found.stats.goal_at_most >= 3);
        CHECK(found.stats.goal_cost_at_least == found.stats.relocation_cost);  // proven
        CHECK(verify::plan(spec, to_spec(found.plan, cluster)).ok);
    }
    const auto two = con::consolidate(cluster, for_nodes(2, "H20"));
    CHECK_THAT(con::explain(cluster, two.plan, cluster.find_node("c")).text,
               Mentions("node 'c' stays occupied plan reaches its goal without it"));
    const auto found = con::consolidate(cluster, for_nodes(5));
    CHECK(found.plan.goal_reached == false);
    CHECK(found.stats.goal_after == 3);  // six tasks need two nodes
    CHECK(found.plan.vacated_nodes.size() == 2);
    CHECK(found.stats.goal_at_most == 3);
    auto unproven = for_nodes(5);
    unproven.search.bound_method = con::BoundMethod::none;
    CHECK_FALSE(con::consolidate(cluster, unproven).stats.goal_at_most.has_value());
    CHECK_FALSE(con::consolidate(cluster, for_slots(7, 3)).stats.goal_cost_at_least.has_value());
    CHECK_FALSE(con::consolidate(cluster).plan.goal_reached.has_value());
}

TEST_CASE("nodes that keep others away do not count for a goal") {
    // a is the cheapest to empty, and dedicated; b and c are open.
    auto spec = stairs();
    spec.nodes.pop_back();
    const Taint dedicated{.key = "dedicated", .value = "serving", .effect = "NoSchedule"};
    const Taint present{.key = "gpu", .value = "present", .effect = "NoSchedule"};
    spec.nodes[0].taints = {dedicated};
    for (auto& one : spec.nodes)
        one.taints.push_back(present);  // all nodes have the taint, so new tasks tolerate it
    for (auto& one : spec.tasks) one.tolerations = {{.op = "Exists"}};
    spec.tasks.push_back(
        {.name = "user",
         .gpu_count = 8,
         .tolerations = {{.key = "dedicated", .op = "Exists"}, {.key = "gpu", .op = "Exists"}}});
    const auto vacated = [&](const Goal& goal) {
        const auto cluster = Cluster::build(spec);
        const auto found = con::consolidate(cluster, {.goal = goal});
        CHECK(verify::plan(spec, to_spec(found.plan, cluster)).ok);
        auto wrong = to_spec(found.plan, cluster);
        wrong.goal_reached = !*wrong.goal_reached;
        CHECK_FALSE(verify::plan(spec, wrong).ok);
        std::string out;
        for (const auto id : found.plan.vacated_nodes) out += cluster.name(id);
        return out + (*found.plan.goal_reached ? "" : " is not enough");
    };
    CHECK(vacated({.empty_nodes = 1}) == "b");
    CHECK(vacated({.empty_nodes = 1, .usable_by = "user"}) == "a");
    CHECK(vacated({.slots = SlotShape{.gpu_count = 8}}) == "b");
    CHECK(vacated({.slots = SlotShape{.gpu_count = 8}, .usable_by = "user"}) == "a");
    const auto counted = [&](const Goal& goal) {
        const auto cluster = Cluster::build(spec);
        std::string out;
        for (const auto id : con::goal_nodes(cluster, goal)) out += cluster.name(id);
        return out;
    };
    CHECK(counted({.empty_nodes = 1}) == "bcd");
    CHECK(counted({.empty_nodes = 1, .usable_by = "user"}) == "abc");  // d has a locked task
    spec.tasks.back().node_selector = {{"zone", "z"}};
    spec.nodes[2].labels = {{"zone", "z"}};
    CHECK(counted({.empty_nodes = 1, .usable_by = "user"}) == "c");
    CHECK(vacated({.empty_nodes = 1, .usable_by = "user"}) == "c");
    // If all nodes of a model have a taint, tasks for that model tolerate it.
    spec.nodes[0].gpu_model = "L4";
    CHECK(counted({.empty_nodes = 1, .gpu_model = "L4"}) == "a");
    // A cordoned node and its taints do not count.
    spec.nodes[1].schedulable = false;
    spec.nodes[1].taints.clear();
    CHECK(counted({.empty_nodes = 1, .gpu_model = "H20"}) == "cd");
}

TEST_CASE("nodes that are too small for a task are not usable by it") {
    auto spec = stairs();
    spec.tasks.push_back({.name = "user", .cpu_milli = 8000, .gpu_count = 8, .resources = {{"hca", 1}}});
    for (auto& node : spec.nodes) node.resources["hca"] = 1;
    const auto counted = [&] {
        const auto cluster = Cluster::build(spec);
        std::string out;
        for (const auto id : con::goal_nodes(cluster, {.empty_nodes = 1, .usable_by = "user"}))
            out += cluster.name(id);
        return out;
    };
    CHECK(counted() == "abce");  // tasks that may move do not count, the locked one on d does
    spec.nodes[0].failed_gpus = {7};
    CHECK(counted() == "bce");
    spec.nodes[1].cpu_milli = 4000;
    CHECK(counted() == "ce");
    spec.nodes[2].resources.clear();
    CHECK(counted() == "e");
    spec.tasks.push_back({.name = "agent", .daemon = true, .node = "e", .resources = {{"hca", 1}}});
    CHECK(counted() == "");
}

TEST_CASE("nodes without GPUs are no empty nodes if others have GPUs") {
    auto spec = stairs();
    spec.nodes.push_back({.name = "cpu", .cpu_milli = 64'000, .memory_mib = 65'536});
    const auto counted = [](const ClusterSpec& of, const Goal& goal) {
        return con::goal_nodes(Cluster::build(of), goal).size();
    };
    CHECK(counted(spec, {.empty_nodes = 1}) == 5);
    CHECK(counted(spec, {.slots = SlotShape{.cpu_milli = 1000}}) == 6);
    CHECK(con::consolidate(Cluster::build(spec), {.goal = Goal{.empty_nodes = 1}}).stats.goal_before == 1);
    CHECK(counted({.nodes = {spec.nodes.back()}}, {.empty_nodes = 1}) == 1);
    // A node with only failed GPUs is not empty either, also for the checker.
    auto& broken = spec.nodes.back();
    broken.gpu_count = 2;
    broken.failed_gpus = {0};
    CHECK(counted(spec, {.empty_nodes = 1}) == 6);
    broken.failed_gpus = {0, 1};
    CHECK(counted(spec, {.empty_nodes = 1}) == 5);
    const auto cluster = Cluster::build(spec);
    const auto found = con::consolidate(cluster, {.goal = Goal{.empty_nodes = 2}});
    CHECK(verify::plan(spec, to_spec(found.plan, cluster)).ok);
    CHECK(found.stats.goal_before == 1);
}

TEST_CASE("slots of a shape are counted on all nodes") {
    const auto cluster = Cluster::build(stairs());
    // Slots for seven GPUs: one on a, one on e.
    const auto found = con::consolidate(cluster, for_slots(7, 3));
    CHECK(found.stats.goal_before == 2);
    CHECK(found.plan.goal_reached == true);
    CHECK(found.stats.goal_after == 3);
    // Slots for four: 1 on a, b, c and d, 2 on e.
    CHECK(con::consolidate(cluster, for_slots(4, 6)).plan.moves.empty());
    CHECK(con::consolidate(cluster, for_slots(4, 7)).stats.goal_before == 6);
    // The default is one slot.
    CHECK(con::consolidate(cluster, {.goal = Goal{.slots = SlotShape{.gpu_count = 8}}}).plan.goal_reached ==
          true);
}

TEST_CASE("goals count the state after the plan, and their plans are valid") {
    int reached = 0;
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
        Rng rng(seed);
        const auto spec =
            random_cluster(rng, {.min_nodes = 5, .max_nodes = 30, .min_tasks = 10, .max_tasks = 80});
        const auto cluster = Cluster::build(spec);
        const auto gpus = static_cast<int>(seed % 4);
        const auto count = 1 + static_cast<std::int64_t>(rng.below(20));
        auto options = gpus == 0 ? for_nodes(count) : for_slots(gpus, count);
        if (seed % 8 < 4) options.goal->usable_by = spec.tasks[rng.below(spec.tasks.size())].name;
        options.threads = 1;
        const auto found = con::consolidate(cluster, options);
        const auto after = apply(cluster, found.plan);
        INFO("seed " << seed);
        auto plan = to_spec(found.plan, cluster);
        REQUIRE(verify::plan(spec, plan).ok);
        plan.goal_reached = !*plan.goal_reached;
        REQUIRE_FALSE(verify::plan(spec, plan).ok);
        std::int64_t available = 0;
        for (const auto node : con::goal_nodes(after, *options.goal))
            if (!after.inventory().nodes.is_cordoned(node))
                available += gpus == 0 ? (after.occupants(node) == 0 ? 1 : 0)
                                       : gpu_count(after.idle_gpus(node)) / gpus;
        REQUIRE(found.stats.goal_after == available);
        REQUIRE(found.stats.goal_after >= found.stats.goal_before);
        REQUIRE(*found.plan.goal_reached == (available >= count));
        if (gpus == 0) {
            REQUIRE(found.stats.goal_at_most >= found.stats.goal_after);
            REQUIRE(found.stats.goal_cost_at_least <= found.stats.relocation_cost);
        }
        reached += *found.plan.goal_reached && !found.plan.moves.empty() ? 1 : 0;
    }
    CHECK(reached >= 3);
}

TEST_CASE("goals that mean nothing are refused") {
    const auto cluster = Cluster::build(stairs());
    const auto refused = [&](Goal goal, const char* message) {
        REQUIRE_THROWS_MESSAGE(con::consolidate(cluster, {.goal = goal}), InvalidInput, message);
    };
    refused({}, "goal: neither empty_nodes nor slots;");
    refused({.empty_nodes = 1, .slots = SlotShape{.gpu_count = 1}}, "goal: empty_nodes and slots;");
    refused({.empty_nodes = 0}, "goal: empty_nodes: 0; expected 1");
    refused({.empty_nodes = 1, .count = 2}, "goal: count cannot be combined with empty_nodes");
    refused({.slots = SlotShape{}}, "goal: slots: all 0; expected gpu_count cpu_milli memory_mib above 0");
    refused({.slots = SlotShape{.gpu_count = 65}}, "goal: slots: gpu_count: 65; expected 0 64");
    refused({.slots = SlotShape{.gpu_count = 1, .cpu_milli = -1}}, "goal: slots: cpu_milli: -1; expected 0");
    refused({.slots = SlotShape{.gpu_count = 1}, .count = 0}, "goal: count: 0; expected 1");
    refused({.empty_nodes = 1, .gpu_model = "H21"}, "goal: gpu_model: 'H21'; expected GPU model 'H20'");
    refused({.empty_nodes = 1, .usable_by = "a1"}, "goal: usable_by: 'a1'; expected task");
    // A model that tasks accept and no node has.
    auto wishful = stairs();
    wishful.tasks.front().gpu_models.push_back("H21");
    REQUIRE_THROWS_MESSAGE(
        con::consolidate(Cluster::build(wishful), {.goal = Goal{.empty_nodes = 1, .gpu_model = "H21"}}),
        InvalidInput, "goal: gpu_model: 'H21'; expected GPU model 'H20'");

    auto options = for_nodes(1);
    options.preset = con::Preset::ipc;
    options.objective = con::Objective::nodes;
    options.search.polish_time = 1;
    for (const auto* field : {"preset: ipc cannot be combined with goal", "objective cannot be combined",
                              "polish_time cannot be combined"})
        REQUIRE_THROWS_MESSAGE(con::consolidate(cluster, options), InvalidInput, field);
    REQUIRE_THROWS_MESSAGE(con::consolidate(cluster, con::presets::best(), for_nodes(1)), InvalidInput,
                           "goal: no effect policies of your own");
    con::FrontierOptions frontier;
    frontier.goal = Goal{.empty_nodes = 1};
    REQUIRE_THROWS_MESSAGE(con::frontier(cluster, frontier), InvalidInput,
                           "frontier() does not support goal");
}

TEST_CASE("slots are made on nodes that stay in use") {
    // No node can be vacated. Once x has left a for b or c, a has four idle GPUs; c would lose a slot of its own.
    const ClusterSpec spec{.nodes = {node("a"), node("b"), node("c")},
                           .tasks = {task("l", "a", {0, 1, 2, 3}, true), task("x", "a", {4, 5}),
                                     task("m", "b", {0, 1, 2, 3, 4}, true),
                                     task("n", "c", {0, 1, 2, 3}, true)}};
    const auto cluster = Cluster::build(spec);
    auto options = for_slots(4, 2);
    const auto found = con::consolidate(cluster, options);
    CHECK(found.stats.goal_before == 1);
    REQUIRE(found.plan.goal_reached == true);
    REQUIRE(found.plan.moves.size() == 1);
    CHECK(found.plan.moves[0].task == cluster.find_task("x"));
    CHECK(found.plan.moves[0].to == cluster.find_node("b"));
    CHECK(found.plan.vacated_nodes.empty());
    CHECK(found.stats.relocation_cost == 1);
    CHECK(verify::plan(spec, to_spec(found.plan, cluster)).ok);

    options.max_moves = 0;
    const auto none = con::consolidate(cluster, options);
    CHECK(none.plan.goal_reached == false);
    CHECK(none.plan.moves.empty());
    CHECK(none.stop_reason == StopReason::move_budget);
    options.max_moves.reset();
    options.price = 1001;  // more than a slot is worth
    CHECK(con::consolidate(cluster, options).plan.goal_reached == false);
}

TEST_CASE("tasks move aside for tasks that move aside for slots") {
    // x leaves a for b once y has left b for c, where x may not run. No node can be vacated.
    ClusterSpec spec{.nodes = {node("a", 4), node("b", 4), node("c", 4, "L4")},
                     .tasks = {task("l", "a", {0, 1}, true), task("x", "a", {2}),
                               task("m", "b", {0, 1, 2}, true), task("y", "b", {3}),
                               task("n", "c", {0, 1, 2}, true)}};
    spec.tasks[1].gpu_models = {"H20"};
    spec.tasks[1].cpu_milli = 2000;
    const auto cluster = Cluster::build(spec);
    auto options = for_slots(2, 1);
    const auto found = con::consolidate(cluster, options);
    CHECK(found.stats.goal_before == 0);
    REQUIRE(found.plan.goal_reached == true);
    CHECK(found.stats.relocation_cost == 2);
    CHECK(verify::plan(spec, to_spec(found.plan, cluster)).ok);
    for (const auto preset : {con::Preset::fast, con::Preset::best}) {
        options.preset = preset;
        CHECK(con::consolidate(cluster, options).plan.goal_reached == true);
        options.search.depth = 1;
        CHECK(con::consolidate(cluster, options).plan.goal_reached == false);
        options.search.depth = 2;
        options.search.max_others = 0;
        CHECK(con::consolidate(cluster, options).plan.goal_reached == false);
        options.search.max_others.reset();
        options.max_moves = 1;
        const auto limited = con::consolidate(cluster, options);
        CHECK(limited.plan.goal_reached == false);
        CHECK(limited.stop_reason == StopReason::move_budget);
        options.max_moves.reset();
        options.price = 501;  // two moves are worth more than a slot
        CHECK(con::consolidate(cluster, options).plan.goal_reached == false);
        options.price = 0;
    }
}

TEST_CASE("tasks that change places make slots") {
    // x and y do not fit together into the memory of a: x goes to b, then y to a, which leaves four cores on b.
    ClusterSpec spec{.nodes = {node("a", 2), node("b", 2)},
                     .tasks = {task("x", "a", {}), task("k", "a", {}, true), task("y", "b", {}),
                               task("l", "b", {}, true)}};
    spec.nodes[0].cpu_milli = 3500;
    spec.nodes[1].cpu_milli = 5000;
    spec.nodes[0].memory_mib = 3000;
    spec.tasks[0].cpu_milli = spec.tasks[0].memory_mib = 1000;
    spec.tasks[2].cpu_milli = 2000;
    spec.tasks[2].memory_mib = 2500;
    const auto cluster = Cluster::build(spec);
    const auto found = con::consolidate(cluster, {.goal = Goal{.slots = SlotShape{.cpu_milli = 4000}}});
    CHECK(found.stats.goal_before == 0);
    CHECK(found.plan.goal_reached == true);
    CHECK(verify::plan(spec, to_spec(found.plan, cluster)).ok);
}

TEST_CASE("a goal is reached with the fewer moves of vacating nodes and leaving them in use") {
    // Vacating a takes three moves; one task of b leaves room for the shape, too.
    const ClusterSpec spec{.nodes = {node("a", 4), node("b", 4), node("c", 8)},
                           .tasks = {fraction("p", "a", 0, 300), fraction("q", "a", 1, 300),
                                     fraction("r", "a", 2, 300), task("l", "b", {0, 1}, true),
                                     task("x", "b", {2}), task("m", "c", {0, 1, 2, 3, 4, 5}, true)}};
    const auto cluster = Cluster::build(spec);
    const auto found = con::consolidate(cluster, for_slots(2, 2));
    REQUIRE(found.stats.goal_before == 1);
    CHECK(found.plan.goal_reached == true);
    CHECK(found.stats.moves == 1);
}

TEST_CASE("a goal that is there already has statistics of the cluster as it is") {
    const auto cluster = Cluster::build(stairs());
    const auto found = con::consolidate(cluster, for_nodes(1));
    CHECK(found.plan.goal_reached == true);
    CHECK(found.plan.moves.empty());
    CHECK(found.stats.not_fully_occupied_before == 4);
    CHECK(found.stats.not_fully_occupied_after == 4);
}

TEST_CASE("a goal of as many empty nodes as best reaches is reached") {
    int asked = 0;
    for (std::uint64_t seed = 0; seed < testing_support::instances(250u); ++seed) {
        Rng rng(seed + 90);
        const auto spec =
            random_cluster(rng, {.min_nodes = 3, .max_nodes = 14, .min_tasks = 6, .max_tasks = 36});
        const auto cluster = Cluster::build(spec);
        const auto best = con::consolidate(cluster, {.objective = con::Objective::nodes});
        const auto after = apply(cluster, best.plan);
        std::int64_t empty = 0;
        for (const auto node : con::goal_nodes(cluster, {.empty_nodes = 1}))
            empty += after.occupants(node) == 0;
        if (empty == 0 || best.plan.vacated_nodes.empty()) continue;
        INFO("seed " << seed << ": " << empty);
        const auto found = con::consolidate(cluster, for_nodes(empty));
        CHECK(found.plan.goal_reached == true);
        REQUIRE(verify::plan(spec, to_spec(found.plan, cluster)).ok);
        ++asked;
    }
    CHECK(asked > testing_support::instances(100));
}

TEST_CASE("a goal vacates no more nodes than requested if that takes moves") {
    int moved = 0, more = 0;
    for (std::uint64_t seed = 180; seed < 180 + testing_support::instances(80u); ++seed) {
        Rng rng(seed);
        const auto spec =
            random_cluster(rng, {.min_nodes = 5, .max_nodes = 40, .min_tasks = 10, .max_tasks = 90});
        const auto cluster = Cluster::build(spec);
        for (const std::int64_t further : {1, 2, 3}) {
            std::int64_t count = further;
            for (const auto node : con::goal_nodes(cluster, {.empty_nodes = 1}))
                count += cluster.occupants(node) == 0 ? 1 : 0;
            auto options = for_nodes(count);
            options.threads = 1;
            options.preset = seed % 2 == 0 ? con::Preset::best : con::Preset::fast;
            const auto found = con::consolidate(cluster, options);
            if (found.plan.moves.empty() || !found.plan.goal_reached.value_or(false)) continue;
            INFO("seed " << seed << ", " << count);
            CHECK(verify::plan(spec, to_spec(found.plan, cluster)).ok);
            ++moved;
            more += found.stats.goal_after > count ? 1 : 0;
        }
    }
    INFO(more << " of " << moved);
    CHECK(moved > testing_support::instances(100));
    CHECK(more == 0);
}
