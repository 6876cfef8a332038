// SPDX-License-Identifier: Apache-2.0
// At a steady population, tasks that come, run and go allocate nothing, those of new jobs and groups included.
#include "support/allocations.hpp"
#include "support/catch.hpp"

#include <gpusched/model/model.hpp>

using namespace gpusched;

namespace {

// A task of a job of 8; every third is in a group of its job.
TaskSpec arriving(int round, int number) {
    TaskSpec task;
    task.name = "namespace of the team/task " + std::to_string(100'000 + 1000 * round + number);
    task.job = "job of a long name " + std::to_string(100'000 + 1000 * round + number / 8);
    task.cpu_milli = 100;
    task.gpu_count = 1;
    task.gpu_share_milli = 50;
    task.gpu_models = {"A"};
    if (number % 3 == 0) task.anti_affinity = {{task.job, node_level, 4}};
    return task;
}

}  // namespace

TEST_CASE("Tasks that come and go at a steady number allocate nothing") {
    ClusterSpec spec;
    for (int n = 0; n < 40; ++n)
        spec.nodes.push_back({.name = "node " + std::to_string(n),
                              .gpu_model = "A",
                              .gpu_count = 4,
                              .cpu_milli = 128'000,
                              .memory_mib = 1'000});
    for (int t = 0; t < 400; ++t) spec.tasks.push_back(arriving(0, t));
    auto cluster = Cluster::build(spec);
    std::size_t first = 0, last = 0;
    for (int round = 1; round <= 40; ++round) {
        std::vector<TaskSpec> next;
        for (int t = 0; t < 80; ++t) next.push_back(arriving(round, t));
        std::vector<TaskHandle> gone;
        for (const auto task : cluster.tasks())
            if ((index(task) + static_cast<std::size_t>(round)) % 5 == 0)
                gone.push_back(cluster.handle(task));
        REQUIRE(gone.size() == next.size());
        const auto before = testing_support::allocations.load();
        for (const auto task : gone) cluster.remove_task(task);
        for (std::size_t t = 0; t < next.size(); ++t) {
            const auto task = cluster.add_task(next[t]);
            const auto node = cluster.handle(make_id<NodeId>(t % 40));
            cluster.bind(task, node, gpu_bit(static_cast<int>(t % 4)));
        }
        (round == 1 ? first : last) = testing_support::allocations - before;
    }
    CHECK(first > 0);  // look-ups are made
    CHECK(last == 0);
    CHECK(Cluster::build(cluster.to_spec()).task_count() == 400);
}
