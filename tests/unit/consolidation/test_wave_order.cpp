// SPDX-License-Identifier: Apache-2.0
#include "example_clusters.hpp"

using namespace testing_support;

namespace {

// Two full nodes of one GPU pair each that are to swap tasks, and perhaps a third with room.
ClusterSpec swap(bool spare) {
    ClusterSpec spec{.nodes = {node("a", 2), node("b", 2)},
                     .tasks = {task("x", "a", {0}), task("p", "a", {1}, true), task("y", "b", {0}),
                               task("q", "b", {1}, true)}};
    if (spare) {
        spec.nodes.push_back(node("c", 2));
        spec.tasks.push_back(task("r", "c", {0}, true));
    }
    return spec;
}

std::vector<con::Step> crossing(const Cluster& c) {
    const auto a = c.find_node("a"), b = c.find_node("b");
    return {{c.find_task("x"), a, b, gpu_bit(0), 0}, {c.find_task("y"), b, a, gpu_bit(0), 1}};
}

}  // namespace

TEST_CASE("moves that wait for each other take a hop") {
    const auto spec = swap(true);
    const auto before = Cluster::build(spec);
    const std::vector<std::uint8_t> closed(3);
    const auto order = con::order_into_waves(before, crossing(before), closed);
    const auto& after = order.after;
    CHECK(order.hops == 1);
    CHECK(order.dropped_chains == 0);
    REQUIRE(order.moves.size() == 3);
    CHECK(order.waves == 3);
    CHECK(after.node_of(before.find_task("x")) == before.find_node("b"));
    CHECK(after.node_of(before.find_task("y")) == before.find_node("a"));
    CHECK(check(spec, before, plan_of(before, order)).ok);
    // No hop beyond the migration budget, and none to a node that is closed.
    CHECK(con::order_into_waves(before, crossing(before), closed, {.max_moves = 2}).dropped_chains == 2);
    CHECK(con::order_into_waves(before, crossing(before), std::vector<std::uint8_t>{0, 0, 1}).hops == 0);
}

TEST_CASE("a restart shares a wave with moves of other groups, not with those that count its own") {
    for (const std::string counted : {"others", "own"}) {
        INFO(counted);
        ClusterSpec spec{.nodes = {node("a", 2), node("b", 4)},
                         .tasks = {task("x", "a", {0}), task("y", "a", {1}), task("q", "b", {3}, true)}};
        spec.tasks[0].how = Mobility::restart;
        spec.tasks[0].groups = {"own"};
        spec.tasks[1].spread = {{.group = counted, .level = node_level, .max_skew = 5}};
        const auto before = Cluster::build(spec);
        const auto a = before.find_node("a"), b = before.find_node("b");
        const std::vector<con::Step> steps{{before.find_task("x"), a, b, gpu_bit(0), 0},
                                           {before.find_task("y"), a, b, gpu_bit(1), 1}};
        const auto order = con::order_into_waves(before, steps, std::vector<std::uint8_t>(2));
        REQUIRE(order.moves.size() == 2);
        CHECK(order.waves == (counted == "own" ? 2 : 1));
        CHECK(check(spec, before, plan_of(before, order)).ok);
    }
}

TEST_CASE("no wave restarts more tasks of a budget than it allows") {
    ClusterSpec spec{
        .nodes = {node("a", 3), node("b", 4)},
        .tasks = {task("x", "a", {0}), task("y", "a", {1}), task("z", "a", {2}), task("q", "b", {3}, true)}};
    spec.tasks[0].how = Mobility::restart;
    spec.tasks[1].how = Mobility::suspend;
    spec.budgets = {{"budget", {"x", "y", "z"}, {}, 1, false}};
    const auto before = Cluster::build(spec);
    const auto a = before.find_node("a"), b = before.find_node("b");
    std::vector<con::Step> steps;
    for (int i = 0; i < 3; ++i)
        steps.push_back(
            {before.find_task(spec.tasks[static_cast<std::size_t>(i)].name), a, b, gpu_bit(i), 7});
    const std::vector<std::uint8_t> closed(2);
    const auto order = con::order_into_waves(before, steps, closed, {.search = {.record_chains = true}});
    // The copy takes nothing from the budget: it goes with the first of the others.
    REQUIRE(order.moves.size() == 3);
    CHECK(order.waves == 2);
    CHECK(order.moves[0] == Move{steps[0].task, a, b, gpu_bit(0), 0, MoveMode::restart, 7});
    CHECK(order.moves[1] == Move{steps[2].task, a, b, gpu_bit(2), 0, MoveMode::copy, 7});
    CHECK(order.moves[2] == Move{steps[1].task, a, b, gpu_bit(1), 1, MoveMode::restart, 7});
    CHECK(con::order_into_waves(before, steps, closed).moves[0].chain == Move::no_chain);
    // A budget that allows none keeps them where they are: no plan empties the node.
    spec.budgets[0].broken = true;
    CHECK(con::consolidate(Cluster::build(spec), {}).plan.moves.empty());
    spec.budgets.clear();
    CHECK(con::consolidate(Cluster::build(spec), {}).plan.vacated_nodes == std::vector{a});
    spec.tasks[2].how = Mobility::none;
    CHECK(con::consolidate(Cluster::build(spec), {}).plan.moves.empty());
}

TEST_CASE("a task does not arrive in the wave in which its near task restarts") {
    ClusterSpec spec{.nodes = {node("a", 2), node("b", 2), node("c", 2), node("d", 2)},
                     .tasks = {task("member", "a", {0}), task("wants", "c", {0}), task("p", "b", {1}, true),
                               task("q", "d", {1}, true)},
                     .label_levels = {"zone"}};
    for (auto& n : spec.nodes) n.labels["zone"] = n.name == "a" || n.name == "d" ? "east" : "west";
    spec.tasks[0].how = Mobility::restart;
    spec.tasks[0].groups = {"g"};
    spec.tasks[1].near = {{"g", first_label_level}};
    const auto before = Cluster::build(spec);
    const auto moved = [&](const char* who, const char* to, std::uint32_t chain) {
        const auto mover = before.find_task(who);
        return con::Step{mover, before.node_of(mover), before.find_node(to), gpu_bit(0), chain};
    };
    const std::vector<std::uint8_t> closed(4);
    const auto judged = [&](const std::vector<con::Step>& steps) {
        auto order = con::order_into_waves(before, steps, closed);
        CHECK(check(spec, before, plan_of(before, order)).ok);
        return order;
    };
    // While the member is still in the east, a wave earlier, it can come; once it has left, no more.
    CHECK(judged({moved("wants", "d", 0), moved("member", "b", 1)}).waves == 2);
    CHECK(judged({moved("member", "b", 1), moved("wants", "d", 0)}).dropped_chains == 1);
    // A copy is there until the wave ends.
    spec.tasks[0].how = Mobility::copy;
    const auto copied = Cluster::build(spec);
    CHECK(con::order_into_waves(copied, std::vector{moved("member", "b", 1), moved("wants", "d", 0)}, closed)
              .waves == 1);
}

TEST_CASE("moves that cannot be ordered are dropped and counted") {
    const auto before = Cluster::build(swap(false));
    const auto order = con::order_into_waves(before, crossing(before), std::vector<std::uint8_t>(2));
    CHECK(order.moves.empty());
    CHECK(order.dropped_chains == 2);
    CHECK(order.after.same_placement(before));
}

TEST_CASE("no hop to a node that is empty in the end") {
    // z's chain is dropped first; b must then wait elsewhere than on x's and y's node, which both leave.
    auto rival = task("x", "x", {0}), same = task("z", "z", {0});
    rival.anti_affinity = same.anti_affinity = {{"g", node_level, 1}};
    const ClusterSpec spec{.nodes = {node("a", 3), node("b", 3), node("x", 4), node("c", 2), node("z", 2)},
                           .tasks = {task("l", "a", {0}, true), task("a", "a", {1, 2}),
                                     task("f", "b", {0}, true), task("b", "b", {1}), rival,
                                     task("y", "x", {1}), task("c", "c", {0}, true), same,
                                     task("k", "z", {1}, true)}};
    const auto before = Cluster::build(spec);
    const auto step = [&](const char* name, const char* to, GpuMask gpus, std::uint32_t chain) {
        const auto task = before.find_task(name);
        return con::Step{task, before.node_of(task), before.find_node(to), gpus, chain};
    };
    const std::vector<con::Step> steps{step("z", "x", 4, 0), step("y", "c", 2, 1), step("x", "a", 2, 1),
                                       step("b", "a", 4, 1), step("a", "b", 6, 1)};
    const auto order = con::order_into_waves(before, steps, std::vector<std::uint8_t>(5));
    CHECK(check(spec, before, plan_of(before, order)).ok);
}

TEST_CASE("a node that runs empty in one wave receives in a later one") {
    // x needs all of a, so y has to leave first.
    const ClusterSpec spec{.nodes = {node("a", 2), node("b", 2), node("c", 2)},
                           .tasks = {task("x", "b", {0, 1}), task("y", "a", {0}), task("l", "c", {0}, true)}};
    const auto before = Cluster::build(spec);
    const auto a = before.find_node("a"), b = before.find_node("b"), c = before.find_node("c");
    const std::vector<con::Step> steps{{before.find_task("y"), a, c, gpu_bit(1), 0},
                                       {before.find_task("x"), b, a, gpu_bit(0) | gpu_bit(1), 0}};
    const std::vector<std::uint8_t> closed{0, 1, 0}, only_b{0, 1, 0};
    for (const auto& may_vacate : {std::vector<std::uint8_t>(), only_b}) {
        const auto order = con::order_into_waves(before, steps, closed, {}, may_vacate);
        REQUIRE(order.moves.size() == 2);
        CHECK(order.waves == 2);
        CHECK(order.dropped_chains == 0);
        CHECK(check(spec, before, plan_of(before, order)).ok);
    }
    // No task comes to a node that was empty from the start.
    auto empty = spec;
    empty.nodes.push_back(node("d", 2));
    const auto with_empty = Cluster::build(empty);
    const std::vector<con::Step> opens{
        {with_empty.find_task("x"), b, with_empty.find_node("d"), gpu_bit(0) | gpu_bit(1), 0}};
    CHECK(con::order_into_waves(with_empty, opens, std::vector<std::uint8_t>(4)).dropped_chains == 1);
}

TEST_CASE("nodes that must stay in use are not left empty by dropped chains") {
    // On each of many nodes y is to make way for x, which never gets a turn: its job allows no move. One pair may.
    constexpr int pairs = 12;
    ClusterSpec spec{.nodes = {node("room", 2 * pairs)}, .tasks = {task("l", "room", {0}, true)}};
    for (int i = 0; i < pairs; ++i) {
        const auto n = std::to_string(i);
        spec.nodes.push_back(node("a" + n, 2));
        spec.nodes.push_back(node("b" + n, 2));
        spec.tasks.push_back(task("x" + n, "b" + n, {0, 1}));
        spec.tasks.push_back(task("y" + n, "a" + n, {0}));
        if (i > 0) spec.tasks[spec.tasks.size() - 2].job = "still";
    }
    spec.jobs = {{.name = "still", .max_disrupted = 0}};
    const auto before = Cluster::build(spec);
    std::vector<con::Step> steps;
    std::vector<std::uint8_t> may_vacate(before.node_slots());
    for (int i = 0; i < pairs; ++i) {
        const auto n = std::to_string(i);
        const auto a = before.find_node("a" + n), b = before.find_node("b" + n);
        const auto chain = static_cast<std::uint32_t>(2 * i);
        steps.push_back({before.find_task("y" + n), a, before.find_node("room"), gpu_bit(1 + i), chain});
        steps.push_back({before.find_task("x" + n), b, a, gpu_bit(0) | gpu_bit(1), chain + 1});
        may_vacate[index(b)] = 1;
    }
    const auto order =
        con::order_into_waves(before, steps, std::vector<std::uint8_t>(before.node_slots()), {}, may_vacate);
    CHECK(order.moves.size() == 2);
    CHECK(order.dropped_chains == 2 * (pairs - 1));
    CHECK(order.after.node_of(before.find_task("x0")) == before.find_node("a0"));
    for (int i = 1; i < pairs; ++i)
        CHECK(order.after.occupants(before.find_node("a" + std::to_string(i))) == 1);
}

TEST_CASE("a node that must stay in use keeps its last task if none arrives") {
    ClusterSpec spec{.nodes = {node("a"), node("b")},
                     .tasks = {task("x", "a", {0}), task("y", "b", {0}), task("l", "b", {1}, true)}};
    const auto before = Cluster::build(spec);
    const auto a = before.find_node("a"), b = before.find_node("b");
    const con::Step leave{before.find_task("x"), a, b, gpu_bit(2), 0};
    const con::Step arrive{before.find_task("y"), b, a, gpu_bit(1), 1};
    const std::vector<std::uint8_t> closed(2), none_empty(2), any{1, 1};
    const auto order = [&](const std::vector<con::Step>& steps, const std::vector<std::uint8_t>& may_vacate) {
        return con::order_into_waves(before, steps, closed, {}, may_vacate);
    };
    CHECK(order({leave}, any).moves.size() == 1);
    CHECK(order({leave}, none_empty).moves.empty());
    CHECK(order({leave}, none_empty).dropped_chains == 1);
    CHECK(order({leave, arrive}, none_empty).moves.size() == 2);
    CHECK(order({leave, arrive}, none_empty).waves == 1);
}

TEST_CASE("steps of one task are joined") {
    ClusterSpec spec{.nodes = {node("a"), node("b"), node("c")},
                     .tasks = {task("x", "a", {0}), task("l", "b", {0}, true), task("m", "c", {0}, true)}};
    const auto before = Cluster::build(spec);
    const auto a = before.find_node("a"), b = before.find_node("b"), c = before.find_node("c");
    const auto x = before.find_task("x");
    const auto order = con::order_into_waves(
        before, std::vector<con::Step>{{x, a, b, gpu_bit(1), 0}, {x, b, c, gpu_bit(1), 1}},
        std::vector<std::uint8_t>(3));
    REQUIRE(order.moves.size() == 1);
    CHECK(order.moves[0] == Move{x, a, c, gpu_bit(1), 0});
    // There and back again is no move at all.
    CHECK(con::order_into_waves(before,
                                std::vector<con::Step>{{x, a, b, gpu_bit(1), 0}, {x, b, a, gpu_bit(0), 1}},
                                std::vector<std::uint8_t>(3))
              .moves.empty());
}
