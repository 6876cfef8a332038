// SPDX-License-Identifier: Apache-2.0
#include "example_clusters.hpp"
#include "support/instances.hpp"

#include <gpusched/milp/solver.hpp>

using namespace testing_support;
using con::BoundMethod;

namespace {
const Context with_lp{.lp = milp::clp()};
}

TEST_CASE("counting finds that large tasks cannot share a node") {
    // Five tasks of 5 GPUs: by volume four nodes would do (25 of 32 GPUs), but no two fit on one.
    ClusterSpec spec;
    for (int i = 0; i < 5; ++i) {
        const auto name = "n" + std::to_string(i);
        spec.nodes.push_back(node(name));
        spec.tasks.push_back(task("t" + std::to_string(i), name, {0, 1, 2, 3, 4}));
    }
    const auto bound = con::bound(Cluster::build(spec), BoundMethod::counting);
    CHECK(bound.vacated_nodes_at_most <= 1);
    if (with_lp.lp == nullptr) return;
    const auto lp = con::bound(Cluster::build(spec), BoundMethod::lp, {}, with_lp);
    CHECK(lp.vacated_nodes_at_most == 0);
    CHECK(lp.vacated_gpus_at_most == 0);
    CHECK(lp.occupied_nodes_at_least == 5);
    CHECK(lp.method == "lp");
}

TEST_CASE("capacity next to fixed tasks counts as free") {
    ClusterSpec spec{
        .nodes = {node("a"), node("b"), node("c")},
        .tasks = {task("x", "a", {0, 1}), task("y", "b", {0, 1, 2}), task("l", "c", {0, 1, 2, 3}, true)}};
    // Four GPUs free on c: x and y need five, so one of a and b stays.
    auto bound = con::bound(Cluster::build(spec), BoundMethod::counting);
    CHECK(bound.vacated_nodes_at_most == 1);
    CHECK(bound.vacated_gpus_at_most == 8);
    CHECK(bound.occupied_nodes_at_least == 2);
    CHECK(bound.method == "counting");
    // Cores: c has none left.
    spec.tasks[2].cpu_milli = spec.nodes[2].cpu_milli;
    bound = con::bound(Cluster::build(spec), BoundMethod::counting);
    CHECK(bound.vacated_nodes_at_most == 1);  // x and y may share a or b
    // An empty node is not opened.
    spec.nodes.push_back(node("empty"));
    CHECK(con::bound(Cluster::build(spec), BoundMethod::counting) == bound);
}

TEST_CASE("nodes of different size are worth their GPUs") {
    // One task of 1 GPU on each; the task of 1 GPU on the large node fits on a small one.
    ClusterSpec spec{.nodes = {node("big", 8), node("small", 2)},
                     .tasks = {task("x", "big", {0}), task("y", "small", {0})}};
    const auto cluster = Cluster::build(spec);
    for (const auto method : {BoundMethod::counting, BoundMethod::lp}) {
        if (method == BoundMethod::lp && with_lp.lp == nullptr) continue;
        const auto bound = con::bound(cluster, method, {}, with_lp);
        CHECK(bound.vacated_nodes_at_most == 1);
        CHECK(bound.vacated_gpus_at_most == 8);
    }
}

TEST_CASE("nodes without GPUs, each of a size of its own, do not disturb the order of the others") {
    // 4 + 4 GPUs fit on the node with 9: the one with 15 can be vacated.
    ClusterSpec spec{.nodes = {node("g9", 9), node("g15", 15)},
                     .tasks = {task("t9", "g9", {0, 1, 2, 3}), task("t15", "g15", {0, 1, 2, 3})}};
    for (int i = 0; i < 15; ++i) {
        const auto name = "c" + std::to_string(i);
        spec.nodes.push_back({.name = name, .cpu_milli = 1000 + i, .memory_mib = 1000});
        spec.tasks.push_back({.name = "t" + name, .cpu_milli = 1, .memory_mib = 1, .node = name});
    }
    CHECK(con::bound(Cluster::build(spec), BoundMethod::counting).vacated_gpus_at_most >= 15);

    Rng rng(7);
    for (int round = 0; round < instances(200); ++round) {
        ClusterSpec odd;
        for (int n = 0; n < 40; ++n) {
            const auto name = "n" + std::to_string(n);
            const auto gpus = n < 12 ? rng.between(1, 16) : 0;
            auto& added = odd.nodes.emplace_back(node(name, gpus));
            added.cpu_milli = 16'000 * gpus + rng.between(1'000, 64'000);
            auto& user = odd.tasks.emplace_back(task("t" + name, name, {}));
            user.cpu_milli = rng.between(1, 1'000);
            for (int g = 0; g < gpus && (g == 0 || rng.chance(0.5)); ++g) user.gpus.push_back(g);
            user.gpu_count = static_cast<std::int64_t>(user.gpus.size());
        }
        const auto result = con::consolidate(Cluster::build(odd));
        INFO(round);
        CHECK(result.stats.vacated_nodes <= result.plan.bound.vacated_nodes_at_most);
        CHECK(result.stats.vacated_gpus <= result.plan.bound.vacated_gpus_at_most);
    }
}

TEST_CASE("tasks that accept several models join their nodes to one component") {
    ClusterSpec spec{.nodes = {node("a", 8, "A"), node("b", 8, "B")},
                     .tasks = {task("x", "a", {0}), task("l", "b", {0}, true)}};
    spec.tasks[0].gpu_models = {"A"};
    CHECK(con::bound(Cluster::build(spec), BoundMethod::counting).vacated_nodes_at_most == 0);
    spec.tasks[0].gpu_models = {"A", "B"};
    CHECK(con::bound(Cluster::build(spec), BoundMethod::counting).vacated_nodes_at_most == 1);
}

TEST_CASE("the LP bound is at least as strict as counting, and no plan beats it") {
    if (with_lp.lp == nullptr) return;
    const auto cluster = Cluster::build(generated(400, 11));
    const auto counting = con::bound(cluster, BoundMethod::counting),
               lp = con::bound(cluster, BoundMethod::lp, {}, with_lp);
    CHECK(lp.vacated_nodes_at_most <= counting.vacated_nodes_at_most);
    CHECK(lp.vacated_gpus_at_most <= counting.vacated_gpus_at_most);
    const auto plan = con::consolidate(cluster, {.search = {.bound_method = BoundMethod::lp}}, with_lp);
    CHECK(plan.plan.bound == lp);
    CHECK(plan.stats.vacated_nodes <= lp.vacated_nodes_at_most);
    CHECK(plan.stats.vacated_gpus <= lp.vacated_gpus_at_most);
}

TEST_CASE("the LP bound names the solver to pass if the context has none") {
    const auto cluster = Cluster::build(figure_15());
    REQUIRE_THROWS_MESSAGE(con::bound(cluster, BoundMethod::lp), BackendError, "gpusched::milp::clp()");
    REQUIRE_THROWS_MESSAGE(con::consolidate(cluster, {.search = {.bound_method = BoundMethod::lp}}),
                           BackendError, "gpusched::milp::clp()");
}

TEST_CASE("a solver of linear programs of one's own proves no less than counting") {
    class GivesUp final : public LpSolver {
        [[nodiscard]] LpSolution solve_valid(const LpProblem&, const LpBasis&,
                                             std::optional<double>) const override {
            return {.status = LpStatus::failed};
        }
    };
    const GivesUp solver;
    const auto cluster = Cluster::build(generated(100, 11));
    auto counting = con::bound(cluster, BoundMethod::counting);
    counting.method = "lp";
    CHECK(con::bound(cluster, BoundMethod::lp, {}, {.lp = &solver}) == counting);
}

TEST_CASE("no bound unless requested") {
    const auto cluster = Cluster::build(figure_15());
    CHECK(con::consolidate(cluster, {.search = {.bound_method = BoundMethod::none}}).plan.bound == Bound{});
}

TEST_CASE("a plan made at a price has a bound on its value") {
    const auto cluster = Cluster::build(generated(300));
    for (const auto objective : {con::Objective::gpus, con::Objective::nodes}) {
        con::Options options{.price = 700, .objective = objective};
        const auto priced = con::consolidate(cluster, options);
        REQUIRE(priced.plan.bound.value_at_most.has_value());
        CHECK(priced.stats.value_milli > 0);
        CHECK(*priced.plan.bound.value_at_most >= priced.stats.value_milli);
        const auto most = objective == con::Objective::gpus ? priced.plan.bound.vacated_gpus_at_most
                                                            : priced.plan.bound.vacated_nodes_at_most;
        CHECK(*priced.plan.bound.value_at_most < 1000 * most);  // moves cost something
        auto spec = to_spec(priced.plan, cluster, con::to_stats(priced.stats));
        CHECK(verify::plan(generated(300), spec).ok);
        spec.bound.value_at_most = priced.stats.value_milli - 1;
        CHECK(!verify::plan(generated(300), spec).ok);
        options.price = 0;
        CHECK_FALSE(con::consolidate(cluster, options).plan.bound.value_at_most.has_value());
    }
}
