// SPDX-License-Identifier: Apache-2.0
// Small snapshots for the tests of consolidation.
#pragma once

#include "support/catch.hpp"

#include <gpusched/consolidation/consolidation.hpp>
#include <gpusched/sim/generator.hpp>
#include <gpusched/verify/plan.hpp>

namespace testing_support {

using namespace gpusched;
namespace con = gpusched::consolidation;

inline NodeSpec node(std::string name, std::int64_t gpus = 8, std::string model = "H20") {
    return {.name = std::move(name),
            .gpu_model = std::move(model),
            .gpu_count = gpus,
            .cpu_milli = gpus * 16'000,
            .memory_mib = gpus * 100'000};
}

/// A task that holds `gpus` (whole ones) of a node.
inline TaskSpec task(std::string name, std::string on, std::vector<int> gpus, bool locked = false) {
    TaskSpec task{.name = std::move(name)};
    task.gpu_count = static_cast<std::int64_t>(gpus.size());
    task.cpu_milli = 1000 * task.gpu_count;
    task.memory_mib = 1000 * task.gpu_count;
    task.locked = locked;
    task.node = std::move(on);
    task.gpus = std::move(gpus);
    return task;
}

inline TaskSpec fraction(std::string name, std::string on, int gpu, int share, bool locked = false) {
    auto part = task(std::move(name), std::move(on), {gpu}, locked);
    part.gpu_share_milli = share;
    return part;
}

/// Figure 15 of the ASI paper: Job-1 needs three GPUs; nodes 1 to 3 have one idle GPU each. Job-7 goes to node 3,
/// then Job-3 to node 2, then Job-1 to node 1.
inline ClusterSpec figure_15() {
    ClusterSpec spec;
    for (const auto* name : {"node-0", "node-1", "node-2", "node-3"}) spec.nodes.push_back(node(name, 4));
    spec.tasks = {task("job-1", "node-0", {0, 1, 2}), task("job-2", "node-1", {0}, true),
                  task("job-3", "node-1", {1, 2}),    task("job-5", "node-2", {0, 1}, true),
                  task("job-7", "node-2", {2}),       task("job-8", "node-3", {0, 1, 2}, true)};
    return spec;
}

/// A cluster of some hundred nodes of several kinds.
inline ClusterSpec generated(std::int64_t nodes = 600, std::uint64_t seed = 7) {
    return sim::generate_cluster({.nodes = nodes, .seed = seed});
}

/// The plan of ordered moves.
inline Plan plan_of(const Cluster& before, const con::WaveOrder& order) {
    Plan plan;
    plan.waves = order.waves;
    plan.moves = order.moves;
    for (const auto node : before.nodes())
        if (before.occupants(node) > 0 && order.after.occupants(node) == 0)
            plan.vacated_nodes.push_back(node);
    return plan;
}

inline verify::Report check(const ClusterSpec& spec, const Cluster& cluster, const Plan& plan) {
    return verify::plan(spec, to_spec(plan, cluster));
}

}  // namespace testing_support
