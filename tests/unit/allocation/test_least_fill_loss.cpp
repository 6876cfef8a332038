// SPDX-License-Identifier: Apache-2.0
// Placements by expected fill: the ranker and its GPUs; test_place.cpp compares the scores that are kept.
#include "support/specs.hpp"

#include <gpusched/allocation/allocation.hpp>

using namespace gpusched;
using namespace gpusched::allocation;
using fragmentation::ExpectedFill;
using fragmentation::Workload;
using testing_support::node;
using testing_support::task;

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
