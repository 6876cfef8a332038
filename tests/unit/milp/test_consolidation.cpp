// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"

#include <gpusched/core/rng.hpp>
#include <gpusched/milp/milp.hpp>

using namespace gpusched;
using namespace gpusched::milp;

namespace {

/// 25 nodes of 8 GPUs, 159 tasks of one GPU, 66 of them locked, 21 anti-affinity groups, no memory.
ClusterSpec described_instance() {
    ClusterSpec spec;
    for (int n = 0; n < 25; ++n)
        spec.nodes.push_back(
            {.name = "n" + std::to_string(n), .gpu_model = "A", .gpu_count = 8, .cpu_milli = 64'000});
    for (int t = 0; t < 159; ++t) {
        const int node = t % 25;
        TaskSpec task{.name = "t" + std::to_string(t), .cpu_milli = 4000, .gpu_count = 1};
        task.locked = t < 66;
        if (t < 42) task.anti_affinity = {{"g" + std::to_string(t % 21), node_level, 2}};
        task.node = "n" + std::to_string(node);
        task.gpus = {t / 25};
        spec.tasks.push_back(task);
    }
    return spec;
}

/// 60 half-empty nodes whose tasks differ in cores, so that preprocessing the class form takes longer than a short limit.
ClusterSpec slow_to_preprocess() {
    Rng rng(7);
    ClusterSpec spec;
    for (int n = 0; n < 60; ++n) {
        const auto node = "n" + std::to_string(n);
        spec.nodes.push_back({.name = node, .gpu_model = "A", .gpu_count = 8, .cpu_milli = 128'000});
        for (int gpu = 0; gpu < 6;) {
            const auto count = static_cast<int>(rng.between(1, 3));
            TaskSpec task{.name = node + "-" + std::to_string(gpu), .node = node};
            for (int g = 0; g < count; ++g) task.gpus.push_back(gpu + g);
            task.gpu_count = count;
            task.cpu_milli = 1000 * count * rng.between(2, 14);
            task.locked = rng.chance(0.2);
            spec.tasks.push_back(task);
            gpu += static_cast<int>(rng.between(count, count + 2));
        }
    }
    return spec;
}

}  // namespace

TEST_CASE("the described instance of 25 nodes has 4,000 binaries and 800 rows") {
    const auto cluster = Cluster::build(described_instance());
    const auto m = consolidation(cluster, {.locks = LockForm::rows});
    CHECK(m.integer_columns() == 4000);
    CHECK(m.columns() == 4000);
    CHECK(m.rows() == 800);
    CHECK(m.rows_in("assign") == 159);
    CHECK(m.rows_in("gpu") == 25);
    CHECK(m.rows_in("cpu") == 25);
    CHECK(m.rows_in("lock") == 66);
    CHECK(m.rows_in("anti_affinity") == 21 * 25);
    CHECK(consolidation(cluster).rows() == 800 - 66);
    const auto f3 = consolidation(cluster, {.form = ConsolidationForm::classes});
    CHECK(f3.columns() < 1000);
    CHECK(f3.rows_in("assign") == static_cast<int>(f3.classes.size()));
    CHECK(f3.rows_in("link") == static_cast<int>(f3.classes.size()) * 25);
    const auto home = m.home;
    CHECK(m.occupied(home) == 25);
    CHECK(m.moves(home) == 0);
    CHECK(m.decode(m.encode(home)) == home);
    CHECK(evaluate(m, m.encode(home)).objective == Catch::Approx(25));
    CHECK(evaluate(f3, f3.encode(home)).objective == Catch::Approx(25));
}

TEST_CASE("memory, a budget and a bound have rows if they are requested") {
    auto spec = described_instance();
    for (auto& node : spec.nodes) node.memory_mib = 100;
    for (auto& task : spec.tasks) task.memory_mib = 1;
    const auto cluster = Cluster::build(spec);
    CHECK(consolidation(cluster, {.locks = LockForm::rows}).rows_in("memory") == 25);
    CHECK(consolidation(cluster, {.memory = false}).rows_in("memory") == 0);
    const auto m = consolidation(cluster, {.max_moves = 5, .occupied_at_least = 20});
    CHECK(m.rows_in("budget") == 1);
    CHECK(m.rows_in("bound") == 1);
    REQUIRE_THROWS_MESSAGE(consolidation(cluster, {.max_moves = -1}), InvalidInput, "max_moves -1");
    REQUIRE_THROWS_MESSAGE(consolidation(cluster, {.occupied_at_least = 26}), InvalidInput,
                           "occupied_at_least 26 0 25");
    REQUIRE_THROWS_MESSAGE(m.decode(std::vector<double>{1}), InvalidInput, "entries values 1");
    REQUIRE_THROWS_MESSAGE(m.encode({}), InvalidInput, "entries placement 0 159");
}

TEST_CASE("only LP tasks may end up on lent GPUs") {
    if (available_solvers().empty()) return;
    ClusterSpec spec;
    for (const char* name : {"a", "b"})
        spec.nodes.push_back({.name = name, .gpu_model = "A", .gpu_count = 1});
    TaskSpec lender{
        .name = "lender", .gpu_count = 1, .priority_class = PriorityClass::hp, .standby = true, .node = "a"};
    lender.gpus = {0};
    TaskSpec task{.name = "task", .gpu_count = 1, .priority_class = PriorityClass::lp, .node = "b"};
    task.gpus = {0};
    for (const bool lp : {true, false}) {
        task.priority_class = lp ? PriorityClass::lp : PriorityClass::hp;
        spec.tasks = {lender, task};
        for (const auto form : {ConsolidationForm::plain, ConsolidationForm::classes})
            CHECK(solve(consolidation(Cluster::build(spec), {.form = form, .goal = ConsolidationGoal::nodes}))
                      .objective == Catch::Approx(lp ? 1 : 2));
    }
}

TEST_CASE("a failed GPU is not vacated") {
    ClusterSpec spec{.nodes = {{.name = "n0", .gpu_count = 2, .cpu_milli = 100, .memory_mib = 100},
                               {.name = "n1", .gpu_count = 2, .cpu_milli = 100, .memory_mib = 100}},
                     .tasks = {},
                     .jobs = {}};
    spec.nodes[0].failed_gpus = {0};
    for (const auto* node : {"n0", "n1"}) {
        TaskSpec task{.name = std::string("on ") + node, .gpu_count = 1, .node = node, .gpus = {1}};
        spec.tasks.push_back(std::move(task));
    }
    const auto cluster = Cluster::build(spec);
    const auto vacating = [&](std::int64_t gpus) {
        return consolidation(cluster, {.form = ConsolidationForm::classes,
                                       .goal = ConsolidationGoal::moves,
                                       .vacated_gpus_at_least = gpus});
    };
    const auto one = vacating(1), two = vacating(2);
    // The task of n0 moves to n1; the one of n1 finds no GPU that works on n0.
    auto x = one.encode(one.home);
    CHECK_FALSE(evaluate(one, x).feasible(1e-9));
    x = one.encode({cluster.find_node("n1"), cluster.find_node("n1")});
    CHECK(evaluate(one, x).feasible(1e-9));
    CHECK_FALSE(evaluate(two, two.encode({cluster.find_node("n1"), cluster.find_node("n1")})).feasible(1e-9));
    CHECK_THROWS_WITH(vacating(4), Mentions("vacated_gpus_at_least 4 0 3"));
}

TEST_CASE("an empty cluster is an empty model") {
    const auto m = consolidation(Cluster());
    CHECK(m.columns() == 0);
    CHECK(m.rows() == 0);
    CHECK(m.decode({}).empty());
}

TEST_CASE("a time limit that ends a solver before its search is no proof, and keeps the start") {
    const auto cluster = Cluster::build(slow_to_preprocess());
    const auto m = consolidation(cluster, {.form = ConsolidationForm::classes});
    const auto start = m.encode(m.home);
    REQUIRE(evaluate(m, start).feasible());
    for (const auto& name : available_solvers())
        for (const double limit_s : {0.001, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64}) {
            CAPTURE(name, limit_s);
            const auto alone = solve(m, {.time_limit = limit_s}, name);
            CAPTURE(enum_name(alone.status), alone.message);
            CHECK((alone.status == Status::time_limit || alone.status == Status::optimal));
            const auto started = solve(m, {.time_limit = limit_s, .start = start}, name);
            CAPTURE(enum_name(started.status), started.message);
            CHECK((started.status == Status::time_limit || started.status == Status::optimal));
            CHECK(started.has_solution());
            CHECK(started.bound <= started.objective + 1e-6);
        }
}
