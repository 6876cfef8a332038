// SPDX-License-Identifier: Apache-2.0
// Placements by expected fill: the ranker, its GPUs, and scores that are kept.
#include "support/specs.hpp"

#include <gpusched/allocation/allocation.hpp>

using namespace gpusched;
using namespace gpusched::allocation;
using fragmentation::ExpectedFill;
using fragmentation::Workload;
using testing_support::node;
using testing_support::task;

namespace {}  // namespace

TEST_CASE("tasks without GPUs go to spare cores, fractions to a GPU that they complete") {
    ClusterSpec spec;
    spec.nodes = {node("tight", 4, 48), node("spare", 2, 104)};
    spec.tasks = {task("cpu", 0, 1000, 16), task("half", 1, 500, 4), task("running", 1, 500, 4)};
    spec.tasks[2].node = "tight";
    spec.tasks[2].gpus = {3};
    const auto cluster = Cluster::build(spec, IdOrder::as_listed);
    const Workload workload{{{.cpu_milli = 12'000, .gpu_count = 1, .weight = 4},
                             {.cpu_milli = 4'000, .gpu_count = 1, .gpu_share_milli = 500, .weight = 1}}};
    const LeastFillLoss ranker{std::make_shared<const ExpectedFill>(
        workload, cluster.inventory(),
        fragmentation::ExpectedFillOptions{.coverage_percent = 100, .several_gpus_weight = 1000})};
    const LeastFillLossGpus picker{ranker.measure};
    Rng rng(0);
    CHECK(place(cluster, cluster.find_task("cpu"), ranker, picker, rng) ==
          Destination{make_id<NodeId>(1), 0});
    CHECK(place(cluster, cluster.find_task("half"), ranker, picker, rng) ==
          Destination{make_id<NodeId>(0), gpu_bit(3)});
}

TEST_CASE("expected fill: cached scores and prepared nodes agree with a scan of all nodes") {
    Rng rng(5);
    ClusterSpec spec;
    for (int i = 0; i < 30; ++i) spec.nodes.push_back(node("n" + std::to_string(i), rng.between(1, 8), 48));
    for (int i = 0; i < 300; ++i) {
        const auto gpus = rng.between(0, 4);
        spec.tasks.push_back(task("t" + std::to_string(i), gpus,
                                  gpus == 1 && rng.below(2) == 0 ? 100 * rng.between(2, 9) : 1000,
                                  rng.between(1, 12), rng.between(0, 100)));
        if (rng.below(4) == 0) spec.tasks.back().priority_class = PriorityClass::lp;
    }
    auto cluster = Cluster::build(spec);
    cluster.keep_events();
    const auto measure = std::make_shared<const ExpectedFill>(fragmentation::typical_workload(spec.tasks),
                                                              cluster.inventory());
    const LeastFillLoss ranker{measure};
    const LeastFillLossGpus picker{measure};
    RankedPlacement policy(ranker, picker);
    std::vector<TaskId> placed;
    for (int step = 0; step < 1500; ++step) {
        if (!placed.empty() && rng.below(3) == 0) {
            std::swap(rng.pick(std::span(placed)), placed.back());
            cluster.remove(placed.back());
            cluster.commit();
            placed.pop_back();
            continue;
        }
        const auto t = make_id<TaskId>(static_cast<std::size_t>(rng.below(cluster.task_count())));
        if (cluster.is_placed(t)) continue;
        const auto to = policy(cluster, t, rng);
        REQUIRE(to == place(cluster, t, ranker, picker, rng));
        if (!to) continue;
        REQUIRE(gpus_fit(cluster, t, to->node, to->gpus));
        cluster.assign(t, to->node, to->gpus);
        if (rng.chance(0.9)) cluster.commit();  // else it can still be undone when the next one is placed
        placed.push_back(t);
    }
    CHECK(placed.size() > 30);
}
