// SPDX-License-Identifier: Apache-2.0
// Victim policies: names, and orders of the caller's, worked out by hand.
#include "machines.hpp"

#include <gpusched/verify/plan.hpp>

using namespace gpusched;
using namespace gpusched::preemption;
using testing_support::machine;
using testing_support::names;
using testing_support::pending;
using testing_support::running;

namespace {

/// The least that the concept asks for.
struct YoungestFirst {
    std::int64_t operator()(const Cluster& cluster, TaskId victim, std::int64_t now) const {
        return now - cluster.inventory().tasks.start_time[index(victim)];
    }
};
static_assert(VictimOrder<YoungestFirst>);

/// Two machines of eight GPUs; on "a" the oldest task holds most.
ClusterSpec two_machines() {
    ClusterSpec spec;
    spec.now = 100;
    spec.nodes = {machine("a"), machine("b")};
    spec.tasks = {running("a_old", "a", {0, 1, 2, 3}, 0), running("a_mid", "a", {4, 5}, 0),
                  running("a_new", "a", {6, 7}, 0),       running("b_old", "b", {0, 1, 2, 3, 4, 5}, 0),
                  running("b_new", "b", {6, 7}, 0),       pending("p", 4, 1000)};
    const std::int64_t started[] = {10, 50, 90, 20, 30};
    for (std::size_t i = 0; i < 5; ++i) spec.tasks[i].start_time = started[i];
    return spec;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("victims leave in the caller's order, and the node with the cheapest victims wins") {
    const auto spec = two_machines();
    const auto cluster = Cluster::build(spec);
    const auto p = cluster.find_task("p");
    // On "a": a_new, a_mid, 2 x 10 + 2 x 50 GPU-seconds. On "b": b_new, then b_old, for whom b_new comes back: 6 x 80.
    const auto youngest = preempt(cluster, p, {.policy = YoungestFirst{}});
    REQUIRE(youngest.decision);
    CHECK(names(cluster, youngest.decision->victims) == Names{"a_mid", "a_new"});
    CHECK(youngest.decision->cost == 1000 * (2 * 10 + 2 * 50));
    CHECK(youngest.proven);
    CHECK(youngest.decision->score);
    CHECK(verify::plan(spec, to_spec(to_plan(*youngest.decision, p), cluster)).ok);

    // No needless eviction: b_new was first in the order, and may stay once b_old has left.
    auto full = spec;
    full.tasks[0].preemptible = false;
    const auto without_a = Cluster::build(full);
    auto asks_for_six = full;
    asks_for_six.tasks.back().gpu_count = 6;
    asks_for_six.tasks.back().cpu_milli = 48000;
    const auto six = Cluster::build(asks_for_six);
    const auto old = preempt(six, six.find_task("p"), {.policy = YoungestFirst{}}).decision.value();
    CHECK(names(six, old.victims) == Names{"b_old"});

    // Which node: what the caller says that evictions cost, not the order.
    const auto dear = [](const Cluster& c, TaskId task, std::int64_t) {
        return std::int64_t{c.name(task)[0] == 'a' ? 1000 : 1};
    };
    CHECK(names(cluster, preempt(cluster, p, {.policy = YoungestFirst{}, .cost = dear}).decision->victims) ==
          Names{"b_old"});
    // Equal keys: by name.
    const auto any = [](const Cluster&, TaskId, std::int64_t) { return 0; };
    CHECK(names(without_a, preempt(without_a, p, {.policy = any}).decision->victims) ==
          Names{"a_mid", "a_new"});
}

TEST_CASE("an order ranks only tasks of lower priority, at the time of the options") {
    auto spec = two_machines();
    spec.tasks[1].priority = 5000;
    const auto cluster = Cluster::build(spec);
    std::vector<TaskId> asked;
    const auto order = [&](const Cluster&, TaskId victim, std::int64_t now) {
        CHECK(now == 7);
        asked.push_back(victim);
        return 0;
    };
    CHECK(preempt(cluster, cluster.find_task("p"), {.policy = order, .now = 7}).decision);
    CHECK(names(cluster, asked) == Names{"a_new", "a_old", "b_new", "b_old"});
}

TEST_CASE("gangs and lists of smallest sets take an order as they take a name") {
    const auto cluster = Cluster::build(two_machines());
    const std::vector<TaskId> pods{cluster.find_task("p")};
    const auto alone = preempt(cluster, pods[0], {.policy = YoungestFirst{}}).decision.value();
    const auto gang = preempt_gang(cluster, pods, {.policy = YoungestFirst{}}).decision;
    REQUIRE(gang);
    CHECK(gang->victims == alone.victims);
    CHECK(gang->cost == alone.cost);
    const auto sets = [&](const VictimPolicy& policy) {
        return minimal_victim_sets(cluster, pods[0], NodeId{0}, {.policy = policy, .qos = std::nullopt}).sets;
    };
    CHECK(sets(YoungestFirst{}) == sets(Policy::imp));
}

TEST_CASE("options that an order cannot be combined with are refused") {
    CHECK_THROWS_MESSAGE(PreemptionIndex({.policy = YoungestFirst{}}), InvalidInput,
                         "policy: victim order; expected imp exhaustive");
    CHECK_THROWS_MESSAGE(validate({.policy = YoungestFirst{}, .engine = Engine::plain}), InvalidInput,
                         "engine='plain' not supported policy 'a victim order'; use");
    CHECK_THROWS_MESSAGE(validate({.policy = static_cast<Policy>(99)}), InvalidInput,
                         "policy: 99; expected spot, spot_exact, imp,");
}

TEST_CASE("victim policies by name: those of the enumeration, and orders in a copy of the registry") {
    CHECK(victim_policies().names() ==
          Names{"spot", "spot_exact", "imp", "exhaustive", "reprieve", "first_fit"});
    CHECK(victim_policies().make("reprieve") == Policy::reprieve);
    CHECK_THROWS_MESSAGE(victim_policies().make("exhaustve"), InvalidInput,
                         "policy: 'exhaustve'; did you mean 'exhaustive'?");
    auto policies = victim_policies();
    policies.add<YoungestFirst>("youngest_first");
    const auto cluster = Cluster::build(two_machines());
    const auto p = cluster.find_task("p");
    CHECK(preempt(cluster, p, {.policy = policies.make("youngest_first")}).decision ==
          preempt(cluster, p, {.policy = YoungestFirst{}}).decision);
}
