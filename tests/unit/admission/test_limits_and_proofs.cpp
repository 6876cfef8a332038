// SPDX-License-Identifier: Apache-2.0
// Proofs and binding limits of admission with limits, budgets, Standby tasks or many small tasks.
#include "support/catch.hpp"
#include "support/plans.hpp"

#include <gpusched/admission/admission.hpp>
#include <gpusched/allocation/job_request.hpp>

using namespace gpusched;
using namespace gpusched::admission;

namespace {

ClusterSpec nodes(const std::vector<int>& gpus, std::int64_t cpu_milli = 64000) {
    ClusterSpec spec;
    for (std::size_t n = 0; n < gpus.size(); ++n)
        spec.nodes.push_back({.name = "n" + std::to_string(n),
                              .gpu_count = gpus[n],
                              .cpu_milli = cpu_milli,
                              .memory_mib = 1000});
    return spec;
}

TaskSpec& run(ClusterSpec& spec, const std::string& name, const std::string& node, std::vector<int> gpus) {
    TaskSpec task{.name = name,
                  .gpu_count = static_cast<std::int64_t>(gpus.size()),
                  .node = node,
                  .gpus = std::move(gpus)};
    spec.tasks.push_back(task);
    return spec.tasks.back();
}

TaskSpec& wait(ClusterSpec& spec, const std::string& name, std::int64_t gpus, std::int64_t priority = 3) {
    TaskSpec task{.name = name, .gpu_count = gpus, .priority = priority};
    spec.tasks.push_back(task);
    return spec.tasks.back();
}

void lend(TaskSpec& task) {
    task.standby = true;
    task.priority_class = PriorityClass::hp;
    task.preemptible = false;
}

Admission checked(const ClusterSpec& spec, const std::vector<std::string>& pods,
                  const Options& options = {}) {
    const auto cluster = Cluster::build(spec);
    std::vector<TaskId> ids;
    for (const auto& name : pods) ids.push_back(cluster.find_task(name));
    auto made = admit(cluster, ids, options);
    if (!made.broken_budgets.empty()) return made;
    testing_support::require_valid(spec, cluster, made.plan);
    return made;
}

}  // namespace

TEST_CASE("a restarted task and a victim together stay within a budget") {
    // The cheapest way evicts "low", moves "two" to its node and gives the pod "two"'s: two tasks of the budget would be down.
    auto spec = nodes({3, 1, 2, 1}, 8000);
    spec.now = 5000;
    auto& two = run(spec, "two", "n0", {0, 1});
    two.move_cost = 0;
    two.how = Mobility::restart;
    two.priority = 3;
    run(spec, "one", "n0", {2}).priority = 3;
    auto& low = run(spec, "low", "n2", {0, 1});
    low.priority = -2;
    low.preemptible = true;
    low.start_time = 3000;
    spec.budgets.push_back({.name = "b", .tasks = {"two", "one", "low"}, .allowed_down = 1});
    wait(spec, "pod", 2);
    wait(spec, "small", 1, 0).cpu_milli = 1000;
    const auto made = checked(spec, {"pod", "small"});
    REQUIRE(made.admitted);
    CHECK(made.plan.moves.empty());
    CHECK(made.lost == std::vector{Cluster::build(spec).find_task("low")});
    CHECK(made.cost.total() == 2 * 1000 * (2000 + 3600));
    CHECK(made.proven);
}

TEST_CASE("tasks that require different hardware are not alike") {
    // n1 has no known NUMA nodes, so that only "b" can go there.
    auto spec = nodes({4, 4});
    spec.nodes[0].labels["kind"] = "wanted";
    run(spec, "a", "n0", {0, 1}).hardware_affinity = {{HardwareLevel::numa, HardwareQos::guaranteed}};
    run(spec, "b", "n0", {2, 3});
    run(spec, "keeps", "n1", {0, 1}).locked = true;
    wait(spec, "p", 2).node_selector = {{"kind", "wanted"}};
    const auto made = checked(spec, {"p"}, {.evictions = false});
    CHECK(made.admitted);
    CHECK(made.plan.moves.size() == 1);
}

TEST_CASE("the only allowed eviction goes to the task that cannot move") {
    for (const bool fixed_first : {false, true})
        for (const bool by_budget : {false, true}) {
            auto spec = nodes({4, 4});
            const auto add = [&](bool fixed) {
                auto& task = run(spec, fixed ? "fixed" : "free", "n0", {fixed ? 0 : 1});
                task.preemptible = true;
                if (fixed) task.how = Mobility::none;
                if (!fixed) task.start_time = -100000;
            };
            add(fixed_first);
            add(!fixed_first);
            run(spec, "keeps", "n1", {0, 1}).locked = true;
            wait(spec, "p", 4);
            Options options{.prices = {.move_price_s = 1'000'000}};
            options.prices.work = false;
            if (by_budget)
                spec.budgets.push_back({.name = "b", .tasks = {"fixed", "free"}, .allowed_down = 1});
            else
                options.max_evictions = 1;
            const auto made = checked(spec, {"p"}, options);
            REQUIRE(made.admitted);
            CHECK(made.cost.total() == 1'000'300'000);
            CHECK(made.plan.moves.size() == 1);
        }
}

TEST_CASE("a move is preferred to an eviction that breaks a budget at a price") {
    auto spec = nodes({3, 3});
    run(spec, "t", "n0", {0}).preemptible = true;
    run(spec, "x", "n1", {0});
    wait(spec, "p", 3);
    spec.budgets.push_back({.name = "b", .tasks = {"t"}, .allowed_down = 0});
    const auto cluster = Cluster::build(spec);
    Options options{.prices = {.restart_s = 0, .budget_price_s = 1000}};
    options.spare = {cluster.find_task("x")};
    const auto made = checked(spec, {"p"}, options);
    REQUIRE(made.admitted);
    CHECK(made.cost.total() == 30'000);
}

TEST_CASE("with lent GPUs, nothing is proven that another choice of GPUs may refute") {
    SECTION("a cheaper choice of GPUs") {
        auto spec = nodes({3});
        lend(run(spec, "s", "n0", {0, 1}));
        wait(spec, "p", 2, 0).priority_class = PriorityClass::lp;
        const auto made = checked(spec, {"p"});
        REQUIRE(made.admitted);
        CHECK((made.cost.total() == 60'000 || !made.proven));
        REQUIRE(made.bound);
        CHECK(*made.bound <= 60'000);
    }
    SECTION("a way that the search does not see") {
        auto spec = nodes({2});
        lend(run(spec, "s", "n0", {0}));
        auto& t = run(spec, "t", "n0", {0, 1});
        t.priority_class = PriorityClass::lp;
        t.preemptible = true;
        wait(spec, "p0", 1);
        wait(spec, "p1", 1).priority_class = PriorityClass::lp;
        const auto made = checked(spec, {"p0", "p1"});
        CHECK((made.admitted || !made.proven));
    }
    SECTION("a move onto lent GPUs") {
        auto spec = nodes({2, 2});
        lend(run(spec, "s", "n1", {0}));
        run(spec, "t3", "n0", {0}).preemptible = true;
        run(spec, "t13", "n0", {1}).priority_class = PriorityClass::lp;
        wait(spec, "p", 2);
        const auto made = checked(spec, {"p"});
        REQUIRE(made.admitted);
        CHECK((made.cost.total() <= 120'000 || !made.proven));
        REQUIRE(made.bound);
        CHECK(*made.bound <= 120'000);
    }
}

TEST_CASE("a node of many small tasks") {
    auto spec = nodes({0});
    for (int i = 0; i < 47; ++i) {
        auto& task = run(spec, "t" + std::to_string(i), "n0", {});
        task.cpu_milli = i % 3 == 0 ? 500 : i % 3 == 1 ? 1000 : 2000;
        task.preemptible = true;
        task.start_time = -i;
    }
    wait(spec, "p", 0).cpu_milli = 48000;
    const auto made = checked(spec, {"p"}, {.moves = false, .replace = false});
    REQUIRE(made.admitted);
    CHECK_FALSE(made.proven);
}

TEST_CASE("limits of 0 switch a means off, and those that bind are named") {
    auto spec = nodes({2, 2});
    run(spec, "a", "n0", {0});
    run(spec, "b", "n1", {0});
    wait(spec, "p", 2, 0);
    const auto refused = [&](const Options& options, const std::string& text) {
        const auto made = checked(spec, {"p"}, options);
        CHECK_FALSE(made.admitted);
        INFO(made.reason);
        CHECK_THAT(made.reason, Mentions(text));
    };
    REQUIRE(checked(spec, {"p"}).admitted);
    refused({.max_moves = 0}, "max_moves is 0, plan needs 1");
    refused({.max_cost_s = 1}, "max_cost_s is 1, plan costs 30");
    for (auto& task : spec.tasks) task.how = Mobility::none;
    spec.tasks[0].preemptible = true;
    spec.tasks[2].priority = 3;
    refused({.max_evictions = 0}, "max_evictions is 0, plan needs 1");
    spec.budgets.push_back({.name = "of a", .tasks = {"a"}, .allowed_down = 0});
    refused({}, "budget 'of a' allows 1 fewer");
    lend(spec.tasks[0]);
    spec.tasks[2].priority_class = PriorityClass::lp;
    refused({.standby = false}, "standby is off");
}

TEST_CASE("costs of many years of work are distinguished") {
    auto spec = nodes({8, 8});
    spec.now = 1'750'000'000;
    for (int n = 0; n < 2; ++n) {
        auto& task = run(spec, "t" + std::to_string(n), "n" + std::to_string(n), {0, 1, 2, 3, 4, 5, 6, 7});
        task.preemptible = true;
        task.start_time = n * std::int64_t{600'000'000};
    }
    wait(spec, "p", 8);
    const auto made = checked(spec, {"p"});
    REQUIRE(made.lost.size() == 1);
    CHECK(made.cost.lost_work == 8 * (spec.now - 600'000'000) * 1000);
}

TEST_CASE("one node that empties serves displaced tasks of several sizes") {
    // Two pods of 8 GPUs displace two tasks of 4 GPUs and four of 2, which go to three nodes of 6 GPUs, two sizes on each:
    // 16 GPUs move and three tasks of 6 GPUs are lost. A place for 4 GPUs costs a whole such node, one for 2 a third of it.
    std::vector<int> gpus{8, 8, 6, 6, 6};
    gpus.resize(gpus.size() + 16, 2);
    auto spec = nodes(gpus);
    run(spec, "four0", "n0", {0, 1, 2, 3}).priority = 9;
    run(spec, "four1", "n0", {4, 5, 6, 7}).priority = 9;
    for (int i = 0; i < 4; ++i) run(spec, "two" + std::to_string(i), "n1", {2 * i, 2 * i + 1}).priority = 9;
    for (int n = 2; n < 5; ++n) {
        auto& six = run(spec, "six" + std::to_string(n), "n" + std::to_string(n), {0, 1, 2, 3, 4, 5});
        six.preemptible = true;
        six.move_cost = 1000;
    }
    for (int n = 5; n < 21; ++n) {  // so many GPUs are idle that no task must be lost
        auto& stays = run(spec, "one" + std::to_string(n), "n" + std::to_string(n), {0});
        stays.priority = 9;
        stays.locked = true;
    }
    wait(spec, "pod0", 8);
    wait(spec, "pod1", 8);
    const Options prices{.prices = {.move_price_s = 15, .restart_s = 1000, .loss_s = 10, .work = false}};
    for (const std::int64_t most : {420, 430, 1000}) {
        auto options = prices;
        options.max_cost_s = most;
        const auto made = checked(spec, {"pod0", "pod1"}, options);
        REQUIRE(made.admitted);
        CHECK(made.cost.total() == 420'000);
        CHECK(made.bound <= 420'000);
    }
}

TEST_CASE("a victim returns to its own node after another one leaves it") {
    const auto share = [](TaskSpec& task, std::int64_t share_milli, bool can_be_evicted) -> TaskSpec& {
        task.gpu_share_milli = share_milli;
        task.preemptible = can_be_evicted;
        return task;
    };
    SECTION("evicting a small share for good costs less than a larger one") {
        auto spec = nodes({2});
        share(run(spec, "keep", "n0", {1}), 700, false);
        share(run(spec, "small", "n0", {1}), 250, true);
        share(run(spec, "large", "n0", {0}), 300, true);
        wait(spec, "p", 1);
        const auto made = checked(spec, {"p"});
        REQUIRE(made.admitted);
        CHECK(made.cost.total() == 250 * 3600 + 300 * 300);
        REQUIRE(made.bound);
        CHECK(*made.bound <= made.cost.total());
    }
    SECTION("moving a task of higher priority makes the place") {
        auto spec = nodes({3, 2});
        spec.nodes[0].labels = {{"k", "0"}};
        share(run(spec, "small", "n0", {0}), 250, false);
        share(run(spec, "keep", "n0", {0}), 700, false).how = Mobility::none;
        share(run(spec, "victim", "n0", {2}), 250, true).node_selector = {{"k", "0"}};
        run(spec, "other", "n1", {1}).how = Mobility::none;
        wait(spec, "p", 2);
        const auto made = checked(spec, {"p"});
        REQUIRE(made.admitted);
        CHECK(made.cost.total() == 250 * 300 + 250 * 30);
        REQUIRE(made.bound);
        CHECK(*made.bound <= made.cost.total());
    }
    SECTION("whole GPUs, of which the pod needs two on one NUMA node") {
        auto spec = nodes({4, 2});
        spec.nodes[0].labels = {{"k", "0"}};
        spec.nodes[0].hardware = Hardware{.preset = {}, .numa_nodes = {{0, 8, 0b0011}, {1, 8, 0b1100}}};
        for (auto& node : spec.nodes) node.cpu_milli = 8000;
        auto& victim = run(spec, "victim", "n0", {0});
        victim.preemptible = true;
        victim.node_selector = {{"k", "0"}};
        run(spec, "moves", "n0", {2});
        run(spec, "keep", "n0", {3}).locked = true;
        run(spec, "other", "n1", {0}).locked = true;
        wait(spec, "p", 2).hardware_affinity = {{HardwareLevel::numa, HardwareQos::guaranteed}};
        const auto made = checked(spec, {"p"});
        REQUIRE(made.admitted);
        CHECK(made.cost.total() == 1000 * (30 + 300));
    }
}

TEST_CASE("a price of budgets does not prevent the plan that keeps them") {
    for (const std::int64_t price : {0, 100}) {
        auto spec = nodes({4, 4});
        run(spec, "moves", "n0", {0, 3});
        run(spec, "victim", "n0", {2}).preemptible = true;
        run(spec, "suspends", "n1", {1, 3}).how = Mobility::suspend;
        spec.budgets.push_back({.name = "b", .tasks = {"victim", "suspends"}, .allowed_down = 1});
        wait(spec, "p", 4);
        const auto made = checked(spec, {"p"}, {.prices = {.budget_price_s = price}});
        REQUIRE(made.admitted);
        CHECK(made.cost.total() == 1000 * (3600 + 2 * 30));
    }
}

TEST_CASE("tasks on other nodes leave the groups that keep a pod away") {
    const auto apart = [](TaskSpec& task) -> TaskSpec& {
        task.anti_affinity.push_back({"g", 0, 1});
        return task;
    };
    auto spec = nodes({3, 4, 4});
    for (std::size_t n = 0; n < 3; ++n) spec.nodes[n].network = {n < 2 ? "r0" : "r1"};
    run(spec, "keep", "n2", {0, 1}).how = Mobility::none;
    apart(run(spec, "member", "n0", {2}));
    apart(wait(spec, "p", 4));
    auto& member = spec.tasks[1];
    SECTION("it is evicted, and placed again in another rack") {
        member.preemptible = true;
        const auto made = checked(spec, {"p"}, {.moves = false});
        REQUIRE(made.admitted);
        CHECK(made.cost.total() == 300'000);
        CHECK(made.lost.empty());
    }
    SECTION("a member that stays is the reason") {
        member.locked = true;
        spec.nodes.push_back(spec.nodes[1]);  // it keeps the pod off two nodes, the lack of GPUs off one
        spec.nodes.back().name = "n3";
        const auto made = checked(spec, {"p"});
        CHECK_FALSE(made.admitted);
        CHECK(made.obstacle == Obstacle::anti_affinity);
    }
}

TEST_CASE("a GPU that a Standby task shares is idle for an LP pod once the others leave it") {
    auto spec = nodes({1});
    auto& lender = run(spec, "lender", "n0", {0});
    lender.gpu_share_milli = 500;
    lend(lender);
    auto& victim = run(spec, "victim", "n0", {0});
    victim.gpu_share_milli = 500;
    victim.priority_class = PriorityClass::lp;
    wait(spec, "p", 1).priority_class = PriorityClass::lp;
    const auto made = checked(spec, {"p"});
    REQUIRE(made.admitted);
    CHECK(made.cost.total() == 500 * 3600 + 500 * 60);
}
