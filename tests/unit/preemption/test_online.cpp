// SPDX-License-Identifier: Apache-2.0
// A cluster that changes event by event: decisions on it are those of `preempt` on the same snapshot.
#include "machines.hpp"

using namespace gpusched;
using namespace gpusched::preemption;
using testing_support::machine;
using testing_support::pending;
using testing_support::running;

namespace online_tests {

Cluster two_machines() {
    return Cluster::build({.nodes = {machine("n"), machine("m")},
                           .tasks = {running("a", "n", {0, 1, 2, 3}, 1), running("b", "m", {0, 1, 2, 3}, 2),
                                     pending("p", 8, 100), pending("small", 2, 50)}});
}

GpuMask gpus(std::initializer_list<int> numbers) {
    GpuMask mask = 0;
    for (const int gpu : numbers) mask = static_cast<GpuMask>(mask | gpu_bit(gpu));
    return mask;
}

/// The same decision as `preempt` makes on a copy.
void check_like_preempt(OnlinePreemption& online, TaskId task) {
    const auto* const decision = online.decide(task);
    const auto expected = preempt(online.cluster(), task);
    REQUIRE((decision != nullptr) == expected.decision.has_value());
    if (decision == nullptr) return;
    CHECK(decision->node == expected.decision->node);
    CHECK(decision->gpus == expected.decision->gpus);
    CHECK(decision->victims == expected.decision->victims);
}

TEST_CASE("decisions follow the events that are reported") {
    OnlinePreemption online(two_machines());
    const auto& cluster = online.cluster();
    const auto n = cluster.find_node("n"), m = cluster.find_node("m");
    const auto a = cluster.find_task("a"), p = cluster.find_task("p");
    check_like_preempt(online, p);
    REQUIRE(online.decide(p) != nullptr);
    CHECK(online.decide(p)->node == n);  // a is the less important victim
    online.fail_gpu(n, 7);
    check_like_preempt(online, p);
    CHECK(online.decide(p)->node == m);
    online.fail_gpu(n, 7, false);
    online.remove(a);
    CHECK(online.decide(p)->victims.empty());
    online.place(a, n, gpus({4, 5, 6, 7}));
    check_like_preempt(online, p);

    const auto decision = *online.decide(p);
    online.apply(decision, p);
    CHECK(cluster.node_of(p) == decision.node);
    for (const auto victim : decision.victims) CHECK_FALSE(cluster.is_placed(victim));
}

TEST_CASE("a node that fails is empty and cordoned until it is back as it was") {
    auto spec = machine("n");
    spec.taints = {{.key = "maintenance", .effect = "NoSchedule"}};
    OnlinePreemption online(Cluster::build({.nodes = {spec}, .tasks = {running("a", "n", {0}, 1)}}));
    const auto& cluster = online.cluster();
    const auto n = cluster.find_node("n");
    online.fail_node(n);
    CHECK(online.has_failed(n));
    CHECK_FALSE(cluster.is_placed(cluster.find_task("a")));
    CHECK_FALSE(cluster.node_spec(n).schedulable);
    CHECK_THROWS_AS(online.place(cluster.find_task("a"), n, gpus({0})), InvalidInput);
    online.fail_node(n);  // twice is once
    online.fail_node(n, false);
    CHECK_FALSE(online.has_failed(n));
    CHECK(cluster.node_spec(n).schedulable);
    CHECK(cluster.node_spec(n).taints == spec.taints);
    online.place(cluster.find_task("a"), n, gpus({0}));
    CHECK(cluster.node_of(cluster.find_task("a")) == n);
}

TEST_CASE("events that cannot be are refused, and nothing changes") {
    OnlinePreemption online(two_machines());
    const auto& cluster = online.cluster();
    const auto n = cluster.find_node("n"), m = cluster.find_node("m");
    const auto p = cluster.find_task("p"), small = cluster.find_task("small");
    CHECK_THROWS_AS(online.place(small, n, gpus({4})), InvalidInput);
    CHECK_THROWS_AS(online.place(small, n, gpus({7, 8})), InvalidInput);
    CHECK_THROWS_AS(online.fail_gpu(n, 8), InvalidInput);
    CHECK_FALSE(cluster.is_placed(small));
    // The last part of a decision does not fit: its victims stay.
    auto decision = *online.decide(p);
    REQUIRE_FALSE(decision.victims.empty());
    online.fail_node(decision.node == n ? m : n);
    decision.replaced.push_back({decision.victims[0], decision.node == n ? m : n, gpus({0, 1, 2, 3})});
    CHECK_THROWS_AS(online.apply(decision, p), InvalidInput);
    CHECK(cluster.is_placed(decision.victims[0]));
    CHECK_FALSE(cluster.is_placed(p));
}

TEST_CASE("while a decision is being made no event is taken") {
    OnlinePreemption* online = nullptr;
    int refused = 0;
    const CostFunction meddling = [&](const Cluster& cluster, TaskId task, std::int64_t) {
        try {
            online->remove(task);
        } catch (const InvalidInput&) {
            refused += cluster.is_placed(task);
        }
        return std::int64_t{1};
    };
    OnlinePreemption own(two_machines(), {.cost = meddling});
    online = &own;
    CHECK(own.decide(own.cluster().find_task("p")) != nullptr);
    CHECK(refused > 0);
    own.remove(own.cluster().find_task("a"));
    CHECK_FALSE(own.cluster().is_placed(own.cluster().find_task("a")));
}

}  // namespace online_tests
