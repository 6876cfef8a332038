// SPDX-License-Identifier: Apache-2.0
// A placement that fails its last check is an error of its own, not "nothing helps".
#include "machines.hpp"

using namespace gpusched;
using namespace gpusched::preemption;
using testing_support::machine;
using testing_support::pending;
using testing_support::running;

namespace {

/// A cost function that counts its calls, and at its `at`-th call puts another task onto the node: at the last call of a
/// decision this stands for an error of the search, which the last check is for.
CostFunction spoiling(int& calls, int at) {
    return [&calls, at](const Cluster& cluster, TaskId, std::int64_t) {
        if (++calls == at)
            const_cast<Cluster&>(cluster).assign(cluster.find_task("intruder"), cluster.find_node("n"),
                                                 gpu_bit(7));
        return std::int64_t{1};
    };
}

ClusterSpec one_victim() {
    auto intruder = pending("intruder", 1, 100);
    return {.nodes = {machine("n")},
            .tasks = {running("victim", "n", {0, 1, 2, 3}, 1), pending("p", 8, 100), intruder}};
}

/// `decide` finds a decision, and throws when that is spoilt.
/// @param before_last calls of the cost function after the decision is made
template <class Decide>
void throws_when_spoilt(const Decide& decide, int before_last = 0) {
    int calls = 0;
    CHECK(decide(Cluster::build(one_victim()), spoiling(calls, -1)));
    const int last = std::exchange(calls, 0) - before_last;
    REQUIRE_THROWS_MESSAGE(decide(Cluster::build(one_victim()), spoiling(calls, last)), InternalError,
                           "task 'p' on node 'n' failed verification; do not evict");
}

}  // namespace

TEST_CASE("a placement that fails its last check is an internal error in every build") {
    for (const auto policy : {Policy::imp, Policy::reprieve, Policy::spot_exact})
        throws_when_spoilt([&](const Cluster& cluster, const CostFunction& cost) {
            const Options options{.policy = policy, .cost = cost};
            return preempt(cluster, cluster.find_task("p"), options).decision.has_value();
        });
    throws_when_spoilt([](const Cluster& cluster, const CostFunction& cost) {
        auto live = cluster;
        live.keep_events();
        PreemptionIndex index({.cost = cost});
        return index.decide(live, live.find_task("p")) != nullptr;
    });
    throws_when_spoilt(
        [](const Cluster& cluster, const CostFunction& cost) {
            const std::vector pods{cluster.find_task("p")};
            return preempt_gang(cluster, pods, {.cost = cost}).decision.has_value();
        },
        1);  // what the gang loses is summed up afterwards
}
