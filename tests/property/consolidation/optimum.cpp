// SPDX-License-Identifier: Apache-2.0
// Consolidation against exhaustive search on tiny clusters: bounds hold, plans never beat the optimum, and `best`
// nearly always reaches it.
#include "support/exhaustive.hpp"
#include "support/instances.hpp"
#include "support/plans.hpp"
#include "support/random_cluster.hpp"

#include <gpusched/consolidation/consolidation.hpp>
#include <gpusched/milp/solver.hpp>

using namespace gpusched;
using testing_support::instances;

namespace {

/// Calls `visit(seed, spec, optimum, clear)` for many tiny clusters whose optimum is known; returns how many.
/// @param clearing only some nodes, drawn at random (`clear`), may be vacated; otherwise any, and `clear` is absent. Tasks
///     are then larger and there are more clusters, so that nodes often have to run empty to take another task
template <class Visit>
int for_each_tiny_cluster(bool clearing, Visit visit) {
    int known = 0;
    for (std::uint64_t seed = 0; seed < instances<std::uint64_t>(clearing ? 6000 : 1500); ++seed) {
        Rng rng(seed);
        auto how = testing_support::tiny_cluster;
        if (clearing) how.max_request = 4;
        if (seed % 4 == 3) how.extras = 0.15;
        const auto spec = testing_support::random_cluster(rng, how);
        std::vector<bool> may_clear;
        std::optional<std::vector<NodeId>> clear;
        if (clearing) {
            clear.emplace();
            for (std::size_t n = 0; n < spec.nodes.size(); ++n) {
                may_clear.push_back(rng.chance(0.4));
                if (may_clear.back()) clear->push_back(make_id<NodeId>(n));
            }
        }
        const auto optimum = testing_support::exhaustive_optimum(spec, may_clear);
        if (!optimum.complete) continue;
        ++known;
        INFO("seed " << seed);
        visit(seed, spec, optimum, clear);
    }
    return known;
}

/// Whether some move leads to a node that has run empty by then.
bool refills(const Cluster& before, const Plan& plan) {
    auto cluster = before;
    bool found = false;
    for (std::size_t first = 0, last; first < plan.moves.size(); first = last) {
        for (last = first; last < plan.moves.size() && plan.moves[last].wave == plan.moves[first].wave;
             ++last)
            found = found || cluster.occupants(plan.moves[last].to) == 0;
        for (auto i = first; i < last; ++i)
            cluster.assign(plan.moves[i].task, plan.moves[i].to, plan.moves[i].gpus);
    }
    return found;
}

}  // namespace

TEST_CASE("no valid plan beats the bounds") {
    std::vector methods{consolidation::BoundMethod::counting, consolidation::BoundMethod::lp};
    const Context context{.lp = milp::clp()};
    if (context.lp == nullptr) {
        WARN("built without Clp: the LP bound is not tested");
        methods.pop_back();
    }
    for (const bool clearing : {false, true}) {
        int positive = 0;
        const int known = for_each_tiny_cluster(
            clearing, [&](std::uint64_t, const ClusterSpec& spec, const auto& optimum, const auto& clear) {
                consolidation::Options options;
                options.clear = clear;
                const auto cluster = Cluster::build(spec);
                positive += optimum.nodes > 0 ? 1 : 0;
                int occupied = 0;
                for (const auto node : cluster.nodes()) occupied += cluster.occupants(node) > 0 ? 1 : 0;
                for (const auto method : methods) {
                    const auto bound = consolidation::bound(cluster, method, options, context);
                    INFO("method " << bound.method);
                    REQUIRE(optimum.nodes <= bound.vacated_nodes_at_most);
                    REQUIRE(optimum.gpus <= bound.vacated_gpus_at_most);
                    REQUIRE(bound.occupied_nodes_at_least <= occupied - optimum.nodes);
                }
            });
        CAPTURE(clearing, known, positive);
        REQUIRE(known > instances(clearing ? 5600 : 1400));
        REQUIRE(positive > instances(clearing ? 600 : 400));
    }
}

TEST_CASE("best reaches the optimum in 95 of 100 tiny clusters and never beats it") {
    using consolidation::Objective;
    for (const bool clearing : {false, true})
        for (const auto objective : {Objective::gpus, Objective::nodes}) {
            int reached = 0, positive = 0, refilled = 0;
            std::string missed;  // seeds
            for_each_tiny_cluster(clearing, [&](std::uint64_t seed, const ClusterSpec& spec,
                                                const auto& optimum, const auto& clear) {
                consolidation::Options options;
                options.clear = clear;
                options.objective = objective;
                options.seed = seed;
                const auto cluster = Cluster::build(spec);
                const auto result = consolidation::consolidate(cluster, options);
                const auto report = testing_support::require_valid(spec, cluster, result.plan);
                const auto nodes = static_cast<std::int64_t>(report.vacated_nodes.size());
                REQUIRE(nodes <= optimum.nodes);
                REQUIRE(report.vacated_gpus <= optimum.gpus);
                refilled += refills(cluster, result.plan) ? 1 : 0;
                if (clearing)
                    for (const auto node : result.plan.vacated_nodes)
                        REQUIRE(std::count(clear->begin(), clear->end(), node) == 1);
                if (optimum.nodes == 0) return;  // nothing to reach
                ++positive;
                if (objective == Objective::gpus ? report.vacated_gpus == optimum.gpus
                                                 : nodes == optimum.nodes)
                    ++reached;
                else
                    missed += " " + std::to_string(seed);
            });
            INFO(gpusched::enum_name(objective)
                 << (clearing ? ", given nodes" : "") << ": " << reached << " of " << positive
                 << ", missed for seeds" << missed << "; " << refilled
                 << " plans let a node run empty and use it again");
            CHECK(reached * 100 >= positive * 95);
            REQUIRE(positive > instances(clearing ? 600 : 400));
            if (clearing) CHECK(refilled > instances(10));
        }
}
