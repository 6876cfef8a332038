// SPDX-License-Identifier: Apache-2.0
// Blockers on tiny clusters: the gain of each equals planning again on a snapshot without it, and exhaustive
// search finds the same.
#include "support/exhaustive.hpp"
#include "support/instances.hpp"
#include "support/random_cluster.hpp"

#include <gpusched/consolidation/consolidation.hpp>

using namespace gpusched;
using testing_support::instances;
namespace con = gpusched::consolidation;

namespace {

/// The snapshot without a blocker.
ClusterSpec without(ClusterSpec spec, const con::FixedTasks& blocker, const Cluster& cluster) {
    std::set<std::string> names;
    for (const auto task : blocker.tasks) names.insert(cluster.name(task));
    using Kind = con::BlockerKind;
    for (auto& budget : spec.budgets)
        if (blocker.kind == Kind::budget && budget.name == blocker.name)
            budget.broken = false, budget.allowed_down = 1'000'000;
    for (auto& job : spec.jobs)
        if (blocker.kind == Kind::no_disruption && job.name == blocker.name) job.max_disrupted.reset();
    for (auto& task : spec.tasks) {
        if (!names.contains(task.name)) continue;
        if (blocker.kind == Kind::locked) task.locked = false;
        if (blocker.kind == Kind::standby) task.standby = false;
        if (blocker.kind == Kind::cpu_local) task.cpu_local = false;
        if (blocker.kind == Kind::never_moves || blocker.kind == Kind::no_controller)
            task.how = Mobility::restart;
        if (blocker.kind == Kind::gang_domain) task.network_affinity.reset();
    }
    return spec;
}

std::string key(const con::FixedTasks& blocker) {
    return std::string(enum_name(blocker.kind)) + " " + blocker.name;
}

}  // namespace

TEST_CASE("the gain of a blocker equals planning again without it") {
    int gains = 0, pairs = 0, budgets = 0, equal = 0, checked = 0;
    for (std::uint64_t seed = 0; seed < instances<std::uint64_t>(500); ++seed) {
        Rng rng(seed + 900);
        auto how = testing_support::tiny_cluster;
        how.immovable = 0.3;
        how.budgets = 0.4;
        const auto spec = testing_support::random_cluster(rng, how);
        const auto cluster = Cluster::build(spec, IdOrder::as_listed);
        const con::BlockerOptions options{.preset = con::Preset::best, .seed = seed, .threads = 1};
        const auto found = con::blockers(cluster, options);
        INFO("seed " << seed);
        struct Freed {
            std::int64_t gpus = 0, nodes = 0;
        };
        const auto plan = [&](const ClusterSpec& snapshot) {
            con::Options again;
            again.seed = seed;
            again.threads = 1;
            auto policies = con::make_policies();
            policies.node_weight = [weight = policies.node_weight](const Cluster& c, NodeId node) {
                return c.inventory().nodes.is_cordoned(node) ? 0 : weight(c, node);
            };
            const auto before = Cluster::build(snapshot, IdOrder::as_listed);
            Freed freed;
            for (const auto node : con::consolidate(before, policies, again).plan.vacated_nodes) {
                if (before.inventory().nodes.is_cordoned(node)) continue;
                freed.gpus += gpu_count(before.healthy_gpus(node));
                ++freed.nodes;
            }
            return freed;
        };
        const auto base = plan(spec);
        REQUIRE(found.vacated_gpus == base.gpus);
        REQUIRE(found.vacated_nodes == base.nodes);
        for (std::size_t r = 0; r < found.ranked.size(); ++r) {
            const auto& ranked = found.ranked[r];
            if (r > 0) REQUIRE(found.ranked[r - 1].gpus >= ranked.gpus);
            REQUIRE(ranked.blockers.size() == (found.pairs ? 2u : 1u));
            REQUIRE(ranked.gpus > 0);
            auto snapshot = spec;
            for (const auto& blocker : ranked.blockers) {
                snapshot = without(snapshot, blocker, cluster);
                budgets += blocker.kind == con::BlockerKind::budget ? 1 : 0;
            }
            const auto free = plan(snapshot);
            ++checked;
            equal += free.gpus - base.gpus == ranked.gpus && free.nodes - base.nodes == ranked.nodes ? 1 : 0;
            ++gains;
            pairs += found.pairs ? 1 : 0;
        }
    }
    CAPTURE(gains, pairs, budgets, equal, checked);
    CHECK(equal * 100 >= checked * 99);
    CHECK(gains > instances(70));
    CHECK(pairs > instances(5));
    CHECK(budgets > instances(8));
}

TEST_CASE("blockers that exhaustive search confirms are found, and no others") {
    int known = 0, equal = 0, helpful = 0;
    std::string missed;
    for (std::uint64_t seed = 0; seed < instances<std::uint64_t>(400); ++seed) {
        Rng rng(seed + 2900);
        auto how = testing_support::tiny_cluster;
        how.immovable = 0.3;
        how.max_nodes = 4;
        how.max_movable = 4;
        const auto spec = testing_support::random_cluster(rng, how);
        const auto cluster = Cluster::build(spec, IdOrder::as_listed);
        const auto base = testing_support::exhaustive_optimum(spec);
        const auto found = con::blockers(cluster, {.preset = con::Preset::best, .seed = seed, .threads = 1});
        if (!base.complete || found.pairs) continue;
        std::map<std::string, std::int64_t> gains;
        for (const auto& ranked : found.ranked) gains[key(ranked.blockers.front())] = ranked.gpus;
        // Locks by owner, straight from the data.
        std::map<std::string, std::set<std::string>> locked;
        for (const auto& task : spec.tasks)
            if (task.locked && !task.daemon && task.node)
                locked[task.job.empty() ? task.name : task.job].insert(task.name);
        for (const auto& [owner, names] : locked) {
            auto snapshot = spec;
            for (auto& task : snapshot.tasks)
                if (names.contains(task.name)) task.locked = false;
            const auto free = testing_support::exhaustive_optimum(snapshot);
            if (!free.complete) continue;
            ++known;
            helpful += free.gpus > base.gpus ? 1 : 0;
            if (const auto at = gains.find("locked " + owner);
                (at == gains.end() ? 0 : at->second) == free.gpus - base.gpus)
                ++equal;
            else
                missed += " " + std::to_string(seed);
        }
    }
    CAPTURE(known, equal, helpful, missed);
    CHECK(known > instances(200));
    CHECK(helpful > instances(30));
    CHECK(equal * 100 >= known * 97);
}
