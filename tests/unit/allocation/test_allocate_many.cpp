// SPDX-License-Identifier: Apache-2.0
#include "support/instances.hpp"
#include "support/plans.hpp"

#include <gpusched/allocation/allocation.hpp>
#include <gpusched/verify/plan.hpp>

using namespace gpusched;
using namespace gpusched::allocation;

TEST_CASE("jobs that want others near come after them in the plan") {
    ClusterSpec spec;
    for (int n = 0; n < 4; ++n)
        spec.nodes.push_back({.name = "n" + std::to_string(n),
                              .gpu_model = "A",
                              .gpu_count = 8,
                              .cpu_milli = 64'000,
                              .memory_mib = 65'536,
                              .network = {n < 2 ? "left" : "right"}});
    // eval wants data near, and data wants train: the larger a job, the sooner it is placed.
    const std::vector<std::string> wishes{"data", "train", ""}, names{"eval", "data", "train"};
    for (std::size_t j = 0; j < names.size(); ++j) {
        TaskSpec pod{.name = names[j] + "-0",
                     .job = names[j],
                     .cpu_milli = 1'000,
                     .memory_mib = 1'024,
                     .gpu_count = std::int64_t{1} << j,
                     .groups = {names[j]}};
        if (!wishes[j].empty()) pod.near = {{wishes[j], 0}};
        spec.tasks.push_back(pod);
    }
    const auto cluster = Cluster::build(spec);
    std::vector<GangRequest> jobs;
    for (const auto& name : names) jobs.push_back({{cluster.find_task(name + "-0")}, {}});
    for (const auto policy : {JointPolicy::size_sorted, JointPolicy::joint}) {
        const auto found = allocate_many(cluster, jobs, {.policy = policy});
        REQUIRE(found.placed == 3);
        CHECK(found.order == std::vector<std::size_t>{2, 1, 0});
        const auto plan = to_plan(found);
        CHECK(verify::plan(spec, to_spec(plan, cluster)).ok);
        auto after = cluster;
        for (const auto& placed : plan.placements) {
            CHECK(find_obstacle(after, placed.task, placed.node) == Obstacle::none);
            after.assign(placed.task, placed.node, placed.gpus);
        }
    }
}

TEST_CASE("no job stays after the job that it must be near has left") {
    int several = 0, wishes = 0;
    for (std::uint64_t seed = 0; seed < testing_support::instances(400u); ++seed) {
        Rng rng(seed);
        ClusterSpec spec;
        for (int n = 0; n < 8; ++n) {
            spec.nodes.push_back({.name = "n" + std::to_string(n),
                                  .gpu_model = "A",
                                  .gpu_count = 8,
                                  .cpu_milli = 64'000,
                                  .memory_mib = 65'536,
                                  .network = {"rack-" + std::to_string(n / 2)}});
            if (const auto taken = rng.between(0, 6); taken > 0) {
                TaskSpec task{.name = "t" + std::to_string(n),
                              .cpu_milli = 1'000,
                              .memory_mib = 1'024,
                              .gpu_count = taken,
                              .node = spec.nodes.back().name};
                for (int g = 0; g < taken; ++g) task.gpus.push_back(g);
                spec.tasks.push_back(task);
            }
        }
        const auto count = rng.between(3, 6);
        for (int j = 0; j < count; ++j) {
            const auto job = "job-" + std::to_string(j);
            const auto wanted = rng.between(0, count - 1);
            const bool wishes_one = j != wanted && rng.chance(0.5);
            const auto gpus = std::int64_t{1} << rng.below(3);
            for (auto pod = rng.between(1, 4); pod > 0; --pod) {
                TaskSpec task{.name = job + "-" + std::to_string(pod),
                              .job = job,
                              .cpu_milli = 1'000,
                              .memory_mib = 1'024};
                task.gpu_count = gpus;
                task.groups = {job};
                if (wishes_one) task.near = {{"job-" + std::to_string(wanted), 0}};
                spec.tasks.push_back(task);
            }
            wishes += wishes_one;
        }
        const auto cluster = Cluster::build(spec, IdOrder::as_listed);
        std::vector<GangRequest> jobs(static_cast<std::size_t>(count));
        for (const auto task : cluster.tasks())
            if (!cluster.is_placed(task))
                jobs[static_cast<std::size_t>(spec.tasks[index(task)].job.back() - '0')].pods.push_back(task);
        INFO("seed " << seed);
        const auto found = allocate_many(cluster, jobs, {.seed = seed, .iterations = 200});
        testing_support::require_valid(spec, cluster, to_plan(found));
        CHECK(found.order.size() == static_cast<std::size_t>(found.placed));
        several += found.placed > 1;
    }
    CHECK(several > testing_support::instances(200));
    CHECK(wishes > testing_support::instances(300));
}
