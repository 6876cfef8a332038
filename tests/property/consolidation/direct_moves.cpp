// SPDX-License-Identifier: Apache-2.0
// Consolidation on tiny clusters: no preset misses all nodes that one direct move vacates.
#include "support/instances.hpp"
#include "support/random_cluster.hpp"

#include <gpusched/consolidation/consolidation.hpp>
#include <gpusched/verify/plan.hpp>

using namespace gpusched;
using testing_support::instances;

namespace {

/// Two to five nodes of one kind with 1 to 4 GPUs each, and tasks of 1 to 4 whole GPUs.
ClusterSpec whole_gpus(Rng& rng) {
    ClusterSpec spec;
    for (auto nodes = rng.between(2, 5); nodes > 0; --nodes) {
        NodeSpec node{.name = "n" + std::to_string(nodes), .gpu_model = "A", .gpu_count = rng.between(1, 4)};
        for (std::int64_t first = 0; first < node.gpu_count && rng.chance(0.7);) {
            TaskSpec task{.name = "t" + std::to_string(spec.tasks.size()),
                          .gpu_count = rng.between(1, node.gpu_count - first),
                          .node = node.name};
            for (std::int64_t g = 0; g < task.gpu_count; ++g)
                task.gpus.push_back(static_cast<int>(first + g));
            first += task.gpu_count;
            spec.tasks.push_back(std::move(task));
        }
        spec.nodes.push_back(std::move(node));
    }
    return spec;
}

/// Whether some valid plan of one move vacates a node with GPUs: every task is tried on every node.
bool one_move_vacates(const ClusterSpec& spec, const Cluster& cluster) {
    for (const auto task : cluster.tasks())
        for (const auto node : cluster.nodes()) {
            const std::vector<consolidation::WantedMove> move{{task, node, 0}};
            const auto plan = consolidation::order_into_waves(cluster, move).result.plan;
            if (plan.moves.size() != 1 || plan.vacated_nodes.empty()) continue;
            const auto report = verify::plan(spec, to_spec(plan, cluster));
            REQUIRE(report.ok);
            if (report.vacated_gpus > 0) return true;
        }
    return false;
}

}  // namespace

TEST_CASE("if one direct move vacates a node, every preset vacates one") {
    using consolidation::Options, consolidation::Preset, consolidation::Objective;
    const std::vector<std::pair<std::string, Options>> ways{
        {"ipc", {.preset = Preset::ipc}},
        {"fast", {.preset = Preset::fast}},
        {"fast, nodes", {.preset = Preset::fast, .objective = Objective::nodes}},
        {"best", {}},
        {"best with max_moves", {.max_moves = 10}},
        {"best with max_move_cost", {.max_move_cost = 1000}}};
    for (const bool any_kind : {false, true}) {
        std::vector<int> missed(ways.size());
        int possible = 0;
        for (std::uint64_t seed = 0; seed < instances<std::uint64_t>(3000); ++seed) {
            Rng rng(seed);
            const auto spec = any_kind ? testing_support::random_cluster(rng, testing_support::tiny_cluster)
                                       : whole_gpus(rng);
            const auto cluster = Cluster::build(spec);
            if (!one_move_vacates(spec, cluster)) continue;
            ++possible;
            for (std::size_t w = 0; w < ways.size(); ++w) {
                auto options = ways[w].second;
                options.seed = seed;
                if (consolidation::consolidate(cluster, options).plan.vacated_nodes.empty()) ++missed[w];
            }
        }
        for (std::size_t w = 0; w < ways.size(); ++w) {
            INFO((any_kind ? "any kind" : "whole GPUs")
                 << ", " << ways[w].first << ": missed in " << missed[w] << " of " << possible);
            CHECK(missed[w] == 0);
        }
        REQUIRE(possible > instances(500));
    }
}
