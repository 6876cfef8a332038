// SPDX-License-Identifier: Apache-2.0
// All algorithms on generated clusters that hold every kind of constraint: what they plan is accepted by the checker.
#include "algorithms.hpp"
#include "support/instances.hpp"

#include <gpusched/sim/generator.hpp>

using namespace gpusched;
using namespace testing_support;

namespace {

// A cluster with its own share of each constraint, of which some tasks wait.
ClusterSpec random_constrained(std::uint64_t seed, Rng& rng) {
    sim::GeneratorOptions options{.preset = "constrained", .nodes = rng.between(30, 160), .seed = seed};
    options.layout = static_cast<sim::Layout>(rng.below(3));
    options.load = 0.7 + 0.05 * static_cast<double>(rng.below(10));
    visit_fields(std::type_identity<sim::ConstraintShares>{}, [&](const char*, auto share, auto...) {
        const auto most = static_cast<double>(rng.below(3)) / 4;  // a third has none of it
        options.constraints.*share = most * rng.uniform();
    });
    auto spec = sim::generate_cluster(options);
    for (auto& task : spec.tasks) {
        if (!rng.chance(0.03)) continue;
        task.node = {};
        task.gpus.clear();
        task.locked = false;
    }
    // Important jobs of large pods, with the constraints of one that runs.
    const auto running = spec.tasks.size();
    for (int j = 0; j < 4 && running > 0; ++j) {
        auto pod = spec.tasks[static_cast<std::size_t>(rng.below(running))];
        pod.job = "urgent-" + std::to_string(j);
        pod.subgroup.clear();
        pod.priority = 5000;
        pod.priority_class = PriorityClass::hp;
        pod.node = {};
        pod.gpus.clear();
        pod.locked = false;
        pod.gpu_share_milli = 1000;
        pod.gpu_count = std::int64_t{1} << rng.below(4);
        pod.cpu_milli = 2000 * pod.gpu_count;
        pod.resources.clear();
        for (auto pods = rng.between(1, 3); pods > 0; --pods) {
            pod.name = pod.job + "-" + std::to_string(pods);
            spec.tasks.push_back(pod);
        }
    }
    return spec;
}

}  // namespace

TEST_CASE("Plans on generated clusters with every constraint are valid") {
    Seen seen;
    for (std::uint64_t seed = 1; seed <= instances<std::uint64_t>(200); ++seed) {
        INFO("seed " << seed);
        Rng rng(seed);
        const auto spec = random_constrained(seed, rng);
        auto cluster = Cluster::build(spec);
        Algorithms(spec, cluster, seed, seen).check_all();
    }
    for (const char* kind :
         {"vacated", "restarts", "moves of members", "moves of spread tasks", "moves of devices", "placed",
          "evicted", "allocated", "with moves", "gang victims", "jobs together"}) {
        INFO(kind);
        CHECK(seen[kind] > 0);
    }
}
