// SPDX-License-Identifier: Apache-2.0
// Decisions that end early: by a time limit, by a request to stop; what is then said and returned.
#include "machines.hpp"

#include <gpusched/verify/plan.hpp>

using namespace gpusched;
using namespace gpusched::preemption;
using testing_support::machine;
using testing_support::pending;
using testing_support::running;

namespace {

/// Nodes with 48 fractions each that all differ, and a task that needs CPU of many: long searches.
ClusterSpec long_searches(int nodes) {
    Rng rng(1);
    ClusterSpec spec;
    for (int n = 0; n < nodes; ++n) {
        spec.nodes.push_back(machine("n" + std::to_string(n)));
        spec.nodes.back().cpu_milli = 150'000;
        spec.nodes.back().hardware.reset();
        spec.nodes.back().memory_mib = 1'000'000;
        for (int i = 0; i < 48; ++i) {
            auto task = running("t" + std::to_string(n) + "." + std::to_string(i), spec.nodes.back().name,
                                {i % 8}, rng.between(1, 90));
            task.gpu_share_milli = 100 + i % 7;
            task.cpu_milli = rng.between(1500, 3000);
            task.memory_mib = rng.between(5'000, 15'000);
            spec.tasks.push_back(task);
        }
    }
    auto p = pending("p", 4, 100);
    p.cpu_milli = 90'000;
    p.memory_mib = 600'000;
    spec.tasks.push_back(p);
    return spec;
}

}  // namespace

TEST_CASE("a time limit ends a decision, which reports it and is valid") {
    const auto spec = long_searches(40);
    const auto cluster = Cluster::build(spec);
    const auto p = cluster.find_task("p");
    const ManualClock clock(1'000'000);  // a millisecond at every look
    for (const auto policy : {Policy::imp, Policy::exhaustive, Policy::spot_exact}) {
        const Options options{.policy = policy, .time_limit = 0.02};
        const auto found = preempt(cluster, p, options, {.clock = &clock});
        CHECK(found.stop_reason == StopReason::time_limit);
        CHECK_FALSE(found.proven);
        CHECK(found.stats.sets_checked < 20'000);
        CHECK(found.stats.candidate_nodes < 40);
        REQUIRE(found.decision);
        CHECK(verify::plan(spec, to_spec(to_plan(*found.decision, p), cluster)).ok);
    }
    // No time at all: nothing is found, and nothing is claimed.
    const auto none = preempt(cluster, p, {.time_limit = 0.0});
    CHECK_FALSE(none.decision);
    CHECK_FALSE(none.proven);
    CHECK(none.stop_reason == StopReason::time_limit);
    const auto sets = minimal_victim_sets(cluster, p, NodeId{0}, {.qos = std::nullopt, .time_limit = 0.01},
                                          {.clock = &clock});
    CHECK_FALSE(sets.proven);
    CHECK(sets.stop_reason == StopReason::time_limit);
    // Enough time changes nothing.
    const auto small = Cluster::build(long_searches(2));
    const Options few{.search_limit = 300}, guarded{.search_limit = 300, .time_limit = 1e6};
    const auto at = small.find_task("p");
    CHECK(preempt(small, at, few).decision == preempt(small, at, guarded).decision);
    CHECK(preempt(small, at, guarded).stop_reason == StopReason::completed);
}

TEST_CASE("a decision can be cancelled, and reports progress") {
    const auto cluster = Cluster::build(long_searches(40));
    const auto p = cluster.find_task("p");
    std::stop_source stop;
    int told = 0;
    Context context{.stop = stop.get_token(), .progress = [&](const Progress& progress) {
                        ++told;
                        CHECK(std::string(progress.phase) == "preemption");
                        CHECK(progress.total == 40);
                        stop.request_stop();
                    }};
    const auto found = preempt(cluster, p, {}, context);
    CHECK(told == 1);
    CHECK(found.stop_reason == StopReason::cancelled);
    CHECK_FALSE(found.proven);
    const std::vector pods{p};
    context.progress = {};
    const auto gang = preempt_gang(cluster, pods, {}, GangObjective::cost, context);
    CHECK_FALSE(gang.decision);
    CHECK_FALSE(gang.proven);
    CHECK(gang.stop_reason == StopReason::cancelled);
    CHECK_THAT(gang.reason, Mentions("search ended early (cancelled)"));
}

TEST_CASE("the sets of victims that are returned have a bound") {
    ClusterSpec spec;
    spec.nodes = {machine("n")};
    spec.nodes[0].cpu_milli = 300'000;
    spec.nodes[0].hardware.reset();
    for (int i = 0; i < 300; ++i) {
        spec.tasks.push_back(running("v" + std::to_string(i), "n", {}, 1));
        spec.tasks.back().cpu_milli = 1000;
    }
    spec.tasks.push_back(pending("p", 0, 100));
    spec.tasks.back().cpu_milli = 150'000;
    const auto many = Cluster::build(spec);
    const auto found = minimal_victim_sets(many, many.find_task("p"), NodeId{0});
    CHECK(found.sets.size() == 1'000'000 / 150);
    CHECK_FALSE(found.proven);
    CHECK(found.stop_reason == StopReason::completed);
    for (const auto& set : found.sets) REQUIRE(set.size() == 150);
    // As many as one word holds: 18 choose 9 sets of 9.
    spec.nodes[0].cpu_milli = 18'000;
    spec.tasks.erase(spec.tasks.begin() + 18, spec.tasks.end() - 1);
    spec.tasks.back().cpu_milli = 9000;
    const auto few = Cluster::build(spec);
    const auto p = few.find_task("p");
    const auto all = minimal_victim_sets(few, p, NodeId{0});
    CHECK(all.sets.size() == 48'620);
    CHECK(all.proven);
    const auto cut = minimal_victim_sets(few, p, NodeId{0}, {.search_limit = 300'000});
    CHECK(cut.sets.size() == 300'000 / 9);
    CHECK_FALSE(cut.proven);
}

TEST_CASE("time limits that make no sense are refused") {
    const auto cluster = Cluster::build(long_searches(1));
    CHECK_THROWS_MESSAGE(preempt(cluster, cluster.find_task("p"), {.time_limit = -1.0}), InvalidInput,
                         "time_limit: -1; expected 0");
    CHECK_THROWS_MESSAGE(PreemptionIndex({.time_limit = 1.0}), InvalidInput,
                         "time_limit=1 is not supported by PreemptionIndex");
}
