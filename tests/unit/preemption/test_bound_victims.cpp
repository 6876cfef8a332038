// SPDX-License-Identifier: Apache-2.0
// Victims that gangs and disruption budgets bind, and victims that run again: hand-computed cases.
#include "machines.hpp"
#include "support/policies.hpp"

#include <gpusched/verify/plan.hpp>

using namespace gpusched;
using namespace gpusched::preemption;
using testing_support::machine;
using testing_support::names;
using testing_support::pending;
using testing_support::running;

namespace {

const auto policies = testing_support::all_policies();

using Names = std::vector<std::string>;

/// Two machines, full of tasks a0 .. a3 and b0 .. b3 of two GPUs each; "p" wants `gpus`.
ClusterSpec two_machines(std::int64_t gpus) {
    ClusterSpec spec;
    spec.now = 1000;
    spec.nodes = {machine("a"), machine("b")};
    for (const std::string node : {"a", "b"})
        for (int i = 0; i < 4; ++i)
            spec.tasks.push_back(running(node + std::to_string(i), node, {2 * i, 2 * i + 1}, 10));
    spec.tasks.push_back(pending("p", gpus, 100));
    return spec;
}

TaskSpec& task_of(ClusterSpec& spec, const std::string& name) {
    return *std::find_if(spec.tasks.begin(), spec.tasks.end(),
                         [&](const TaskSpec& task) { return task.name == name; });
}

Decision decide(const ClusterSpec& spec, const Options& options) {
    const auto cluster = Cluster::build(spec);
    const auto p = cluster.find_task("p");
    auto d = preempt(cluster, p, options).decision.value();
    const auto report = verify::plan(spec, to_spec(to_plan(d, p), cluster));
    INFO((report.violations.empty() ? "" : report.violations.front()));
    CHECK(report.ok == d.broken_budgets.empty());
    return d;
}

}  // namespace

TEST_CASE("a budget keeps its tasks under every policy, and breaks only when that is allowed") {
    auto spec = two_machines(4);
    spec.budgets = {{.name = "all of a", .tasks = {"a0", "a1", "a2", "a3"}, .allowed_down = 1},
                    {.name = "all of b", .tasks = {"b0", "b1", "b2", "b3"}, .allowed_down = 2}};
    for (const auto policy : policies) {
        INFO(enum_name(policy));
        const auto cluster = Cluster::build(spec);
        const auto d = decide(spec, {.policy = policy});
        CHECK(names(cluster, d.victims) == Names{"b0", "b1"});
        CHECK(d.broken_budgets.empty());
        CHECK(decide(spec, {.policy = policy, .break_budgets = true}) == d);
    }
    spec.budgets[1].allowed_down = 0;
    const auto cluster = Cluster::build(spec);
    const auto p = cluster.find_task("p");
    for (const auto policy : policies) {
        INFO(enum_name(policy));
        CHECK(!preempt(cluster, p, {.policy = policy}).decision);
        const auto d = decide(spec, {.policy = policy, .break_budgets = true});
        CHECK(cluster.name(d.node) == "a");
        CHECK(d.broken_budgets == std::vector<BrokenBudget>{{0, 1}});
    }
    const auto why = explain(cluster, p);
    CHECK(why.obstacle == Obstacle::disruption_budget);
    CHECK(cluster.name(why.node.value()) == "a");
    CHECK(why.missing == 1);
    CHECK_THAT(why.text, Mentions("node 'a' closest: exceed budgets: 'all of a' by 1 task"));
    // A broken budget allows no eviction, whatever its number.
    spec.budgets[1] = {.name = "all of b", .tasks = {"b0"}, .allowed_down = 5, .broken = true};
    const auto d = decide(spec, {.policy = Policy::imp});
    CHECK(names(Cluster::build(spec), d.victims) == Names{"b1", "b2"});
}

TEST_CASE("if an order fails within the budgets, the exact search succeeds") {
    // First to leave is c0, which shares its budget with the one that is needed: only without c0 there is room.
    ClusterSpec spec;
    spec.nodes = {machine("n")};
    spec.tasks = {running("c0", "n", {0}, 1), running("c1", "n", {1, 2, 3, 4, 5, 6, 7}, 2),
                  pending("p", 7, 10)};
    spec.budgets = {{.name = "c", .tasks = {"c0", "c1"}, .allowed_down = 1}};
    for (const auto policy : policies) {
        INFO(enum_name(policy));
        CHECK(names(Cluster::build(spec), decide(spec, {.policy = policy}).victims) == Names{"c1"});
    }
}

TEST_CASE("gangs leave whole, wherever their members are, or by their surplus") {
    auto spec = two_machines(2);
    for (const auto* name : {"a0", "a1", "b0"}) task_of(spec, name).job = "j";
    for (const auto* name : {"a2", "a3", "b1", "b2", "b3"}) task_of(spec, name).locked = true;
    // Nothing is said of its size: all of it. Its work is lost on both machines.
    task_of(spec, "b0").start_time = 400;
    for (const auto policy : policies) {
        INFO(enum_name(policy));
        const auto cluster = Cluster::build(spec);
        const auto d = decide(spec, {.policy = policy});
        CHECK(names(cluster, d.victims) == Names{"a0", "a1", "b0"});
        CHECK(d.cost == 1000 * (2 * 1000 + 2 * 1000 + 2 * 600));
        CHECK(d.priority_sum == 30);
        CHECK(d.vacated_nodes.empty());
    }
    spec.jobs = {{.name = "j", .min_members = 2}};  // one may leave
    for (const auto policy : policies) CHECK(decide(spec, {.policy = policy}).victims.size() == 1);
    // More than the surplus is needed, and one of them may not leave.
    task_of(spec, "p").gpu_count = 4;
    task_of(spec, "b0").locked = true;
    const auto cluster = Cluster::build(spec);
    const auto p = cluster.find_task("p");
    for (const auto policy : policies) CHECK(!preempt(cluster, p, {.policy = policy}).decision);
    const auto why = explain(cluster, p);
    CHECK(why.obstacle == Obstacle::gang);
    CHECK_THAT(why.text,
               Mentions("node 'a' closest: 2 potential victims, would fit gangs members not evicted"));
    // So is the preemptor's own gang kept.
    task_of(spec, "b0").locked = false;
    CHECK(decide(spec, {}).victims.size() == 3);
    task_of(spec, "p").job = "j";
    const auto own = Cluster::build(spec);
    CHECK(!preempt(own, own.find_task("p")).decision);
}

TEST_CASE("a gang is broken if one of its subgroups is") {
    auto spec = two_machines(2);
    for (const auto* name : {"a0", "a1", "b0", "b1"}) task_of(spec, name).job = "j";
    for (const auto* name : {"a2", "a3", "b2", "b3"}) task_of(spec, name).locked = true;
    spec.jobs = {{.name = "j", .min_members = 2, .subgroups = {{"leader", 1}, {"worker", 1}}}};
    task_of(spec, "a0").subgroup = "leader";
    for (const auto* name : {"a1", "b0", "b1"}) task_of(spec, name).subgroup = "worker";
    // The only leader costs least, but takes all along; any worker goes alone.
    task_of(spec, "a0").start_time = 900;
    const auto cluster = Cluster::build(spec);
    for (const auto policy : policies) {
        if (policy == Policy::first_fit) continue;  // looks at priorities alone
        INFO(enum_name(policy));
        const auto d = decide(spec, {.policy = policy});
        REQUIRE(d.victims.size() == 1);
        CHECK(cluster.inventory().tasks.job[index(d.victims[0])] == JobId{0});
        CHECK(cluster.name(d.victims[0]) != "a0");
    }
    // Two workers may leave, not three, nor a leader: four GPUs are had for the whole gang, or not at all.
    task_of(spec, "p").gpu_count = 4;
    for (const auto policy : policies) {
        INFO(enum_name(policy));
        const auto d = decide(spec, {.policy = policy});
        const bool first = policy == Policy::first_fit;  // takes the first machine
        CHECK(names(cluster, d.victims) == (first ? Names{"a0", "a1", "b0", "b1"} : Names{"b0", "b1"}));
    }
    task_of(spec, "b1").subgroup = "leader";
    for (const auto policy : policies) {
        INFO(enum_name(policy));
        // Now each machine has a leader and a worker, one of each of which may leave.
        CHECK(decide(spec, {.policy = policy}).victims.size() == 2);
    }
    spec.jobs[0].subgroups[1].min_members = 2;
    spec.jobs[0].min_members = 3;
    for (const auto policy : policies) {
        INFO(enum_name(policy));
        CHECK(decide(spec, {.policy = policy}).victims.size() == 4);
    }
    task_of(spec, "b1").locked = true;
    for (const auto policy : policies) {
        const auto locked = Cluster::build(spec);
        CHECK(!preempt(locked, locked.find_task("p"), {.policy = policy}).decision);
    }
}

TEST_CASE("a gang that leaves whole vacates other nodes") {
    ClusterSpec spec;
    spec.nodes = {machine("a"), machine("b")};
    spec.tasks = {running("x", "a", {0, 1, 2, 3, 4, 5, 6, 7}, 1), running("y", "b", {0}, 1),
                  pending("p", 8, 10)};
    spec.tasks[0].job = spec.tasks[1].job = "j";
    spec.tasks.push_back(running("stays", "b", {1, 2, 3, 4, 5, 6, 7}, 20));
    auto d = decide(spec, {});
    CHECK(d.victims.size() == 2);
    CHECK(d.vacated_nodes.empty());
    spec.tasks.back().daemon = true;
    d = decide(spec, {});
    CHECK(d.vacated_nodes == std::vector<NodeId>{NodeId{1}});
}

TEST_CASE("budgets count members elsewhere, and all pods of a gang of preemptors together") {
    auto spec = two_machines(2);
    for (const auto* name : {"a0", "b0"}) task_of(spec, name).job = "j";
    for (const auto* name : {"a1", "a2", "a3", "b1", "b2", "b3"}) task_of(spec, name).locked = true;
    spec.budgets = {{.name = "of b", .tasks = {"b0"}, .allowed_down = 0}};
    auto cluster = Cluster::build(spec);
    CHECK(!preempt(cluster, cluster.find_task("p")).decision);
    CHECK(decide(spec, {.break_budgets = true}).broken_budgets == std::vector<BrokenBudget>{{0, 1}});

    spec = two_machines(2);
    auto second = spec.tasks.back();
    second.name = "q";
    spec.tasks.push_back(second);
    spec.budgets = {{.name = "all", .groups = {"g"}, .allowed_down = 1}};
    for (auto& task : spec.tasks)
        if (task.node) task.groups = {"g"};
    cluster = Cluster::build(spec);
    const std::vector<TaskId> pods{cluster.find_task("p"), cluster.find_task("q")};
    CHECK(preempt(cluster, pods[0]).decision);
    CHECK(!preempt_gang(cluster, pods).decision);
    const auto broken = preempt_gang(cluster, pods, {.break_budgets = true}).decision.value();
    CHECK(broken.victims.size() == 2);
    CHECK(broken.broken_budgets == std::vector<BrokenBudget>{{0, 1}});
}

TEST_CASE("victims that fit elsewhere run again, gangs with at least min_members") {
    auto spec = two_machines(8);
    for (int i = 0; i < 3; ++i)
        std::erase_if(spec.tasks, [&](const TaskSpec& t) { return t.name == "b" + std::to_string(i); });
    // Six GPUs of b are free: three of the four victims of a.
    task_of(spec, "b3").locked = true;
    task_of(spec, "a2").priority = 20;
    const auto cluster = Cluster::build(spec);
    CHECK(decide(spec, {}).replaced.empty());
    for (const auto policy : policies) {
        INFO(enum_name(policy));
        const auto d = decide(spec, {.policy = policy, .replace_victims = true});
        CHECK(d.victims.size() == 4);
        REQUIRE(d.replaced.size() == 3);
        CHECK(cluster.name(d.replaced[0].task) == "a2");
        for (const auto& again : d.replaced) CHECK(cluster.name(again.node) == "b");
        CHECK(to_plan(d, cluster.find_task("p")).placements.size() == 4);
    }
    for (const auto* name : {"a0", "a1", "a2", "a3"}) task_of(spec, name).job = "j";
    CHECK(decide(spec, {.replace_victims = true}).replaced.empty());  // all four or none
    spec.jobs = {{.name = "j", .min_members = 3}};
    CHECK(decide(spec, {.replace_victims = true}).replaced.size() == 3);
    // Three of four run again, but which of them leaves out one of a subgroup that needs both.
    spec.jobs[0].subgroups = {{"s", 2}};
    for (const auto* name : {"a0", "a1"}) task_of(spec, name).subgroup = "s";
    const auto left_out = [&] {
        Names again = names(cluster, [&] {
            std::vector<TaskId> tasks;
            for (const auto& p : decide(spec, {.replace_victims = true}).replaced) tasks.push_back(p.task);
            return tasks;
        }());
        return again;
    };
    CHECK(left_out() == Names{"a0", "a1", "a2"});
    for (const auto* name : {"a0", "a1"}) task_of(spec, name).subgroup.clear();
    for (const auto* name : {"a0", "a3"}) task_of(spec, name).subgroup = "s";
    CHECK(left_out().empty());
}

TEST_CASE("the index follows budgets and members of gangs on other nodes") {
    auto spec = two_machines(2);
    for (const auto* name : {"a1", "a2", "a3", "b1", "b2", "b3"}) task_of(spec, name).locked = true;
    task_of(spec, "a0").priority = 5;
    spec.budgets = {{.name = "of a", .tasks = {"a0"}, .allowed_down = 1}};
    auto cluster = Cluster::build(spec);
    cluster.keep_events();
    PreemptionIndex live;
    const auto p = cluster.find_task("p");
    const auto victims = [&] {
        const auto* const d = live.decide(cluster, p);
        return d == nullptr ? Names{} : names(cluster, d->victims);
    };
    CHECK(victims() == Names{"a0"});
    cluster.update_budget({.name = "of a", .tasks = {"a0"}, .allowed_down = 0});
    CHECK(victims() == Names{"b0"});
    cluster.update_budget({.name = "of a", .tasks = {"a0"}, .allowed_down = 1});
    // a0 gets a companion on the other machine that may not leave.
    for (const auto* name : {"a0", "b1"}) {
        auto task = cluster.task_spec(cluster.find_task(name));
        task.job = "j";
        cluster.update_task(cluster.handle(cluster.find_task(name)), task);
    }
    CHECK(victims() == Names{"b0"});
    cluster.remove(cluster.find_task("b1"));
    cluster.commit();
    CHECK(victims().empty());  // it fits in the place of b1
}

TEST_CASE("Kubernetes' order of nodes raises priorities, so that fewer victims of negative priority win") {
    ClusterSpec spec;
    spec.nodes = {machine("a"), machine("b")};
    for (int g = 0; g < 8; ++g) spec.tasks.push_back(running("a" + std::to_string(g), "a", {g}, -10));
    spec.tasks.push_back(running("b", "b", {0, 1, 2, 3, 4, 5, 6, 7}, -10));
    spec.tasks.push_back(pending("p", 8, 0));
    CHECK(decide(spec, {.policy = Policy::reprieve}).node == NodeId{1});
}
