// SPDX-License-Identifier: Apache-2.0
// admit by moves alone on random snapshots with every kind of constraint: the checker accepts every plan, nothing is half done, and
// room that one single move makes is not missed.
#include "support/admissions.hpp"
#include "support/instances.hpp"
#include "support/plans.hpp"
#include "support/random_cluster.hpp"

#include <gpusched/allocation/allocate.hpp>

using namespace gpusched;

namespace {

/// Some single move after which the gang fits: any movable task to any occupied node, by the naive rules.
bool one_move_helps(const ClusterSpec& spec, const Cluster& cluster, std::span<const TaskId> pods,
                    const allocation::AllocateOptions& options) {
    const auto state = reference::initial(spec);
    for (const auto task : cluster.tasks()) {
        if (!cluster.is_movable(task)) continue;
        const auto job = cluster.inventory().tasks.job[index(task)];
        if (job != none<JobId> && cluster.inventory().job_max_disrupted[index(job)] == 0) continue;
        for (const auto node : cluster.nodes()) {
            if (node == cluster.node_of(task) || reference::occupants(state, index(node)) == 0) continue;
            if (reference::obstacle(state, index(task), index(node)) != "none") continue;
            for (const auto& gpus : reference::gpu_sets(state, index(task), index(node))) {
                GpuMask mask = 0;
                for (const int g : gpus) mask = static_cast<GpuMask>(mask | gpu_bit(g));
                auto moved = cluster;
                moved.assign(task, node, mask);
                if (allocation::place_gang(moved, pods, options).placed) return true;
            }
            if (reference::gpu_sets(state, index(task), index(node)).empty()) {
                auto moved = cluster;
                moved.assign(task, node, 0);
                if (allocation::place_gang(moved, pods, options).placed) return true;
            }
        }
    }
    return false;
}

}  // namespace

TEST_CASE("gangs are admitted on 4,000 random snapshots") {
    int as_it_is = 0, with_moves = 0, refused = 0, required = 0, later_waves = 0, missed = 0, single = 0;
    for (std::uint64_t seed = 0; seed < testing_support::instances<std::uint64_t>(4000); ++seed) {
        Rng rng(seed);
        auto how = testing_support::tiny_cluster;
        how.max_nodes = 7;
        how.max_tasks = 14;
        how.max_gpus = 8;
        how.max_request = 6;
        how.max_movable = 10;
        const bool extras = seed % 4 == 3;
        if (extras) how.extras = 0.2;
        const auto base = testing_support::random_cluster(rng, how);
        allocation::PodRequest pod{.count = rng.between(1, 3)};
        pod.pod.gpu_count = rng.between(1, 6);
        pod.pod.cpu_milli = rng.between(0, 6) * 500;
        if (rng.chance(0.2)) pod.pod.anti_affinity.push_back({"spread0", node_level, 1});
        if (extras) pod.pod.resources["pods"] = 1;
        const auto with =
            testing_support::as_listed(allocation::with_job(Cluster::build(base), {"gang", {pod}}));
        const auto spec = with.cluster.to_spec();
        allocation::AllocateOptions options;
        if (rng.chance(0.5)) options.mode = NetworkMode::required;
        INFO("seed " << seed);
        admission::Options moves;
        moves.evictions = false;
        moves.mode = options.mode;
        const auto made = admission::admit(with.cluster, with.pods, moves);
        testing_support::require_valid(spec, with.cluster, made.plan);
        REQUIRE(made.plan.evictions.empty());
        if (!made.admitted) {
            REQUIRE(made.plan == Plan{});
            REQUIRE_FALSE(made.reason.empty());
            ++refused;
            if (pod.pod.anti_affinity.empty() && one_move_helps(spec, with.cluster, with.pods, options)) {
                REQUIRE_FALSE(made.proven);
                ++missed;
            }
            continue;
        }
        REQUIRE(made.plan.placements.size() == with.pods.size());
        REQUIRE(made.pods.size() == with.pods.size());
        const auto after = apply(with.cluster, made.plan);
        std::set<DomainId> domains;
        const auto deepest = with.cluster.inventory().deepest_level();
        for (const auto& p : made.plan.placements) {
            REQUIRE(after.node_of(p.task) == p.node);
            domains.insert(with.cluster.inventory().domain(deepest, p.node));
        }
        if (options.mode == NetworkMode::required) REQUIRE(domains.size() == 1);
        if (made.plan.moves.empty()) {
            REQUIRE(allocation::allocate(with.cluster, with.pods, options).placed);
            ++as_it_is;
        } else {
            REQUIRE_FALSE(allocation::allocate(with.cluster, with.pods, options).placed);
            ++with_moves;
            required += options.mode == NetworkMode::required;
            later_waves += made.plan.waves > 1;
            single += made.plan.moves.size() == 1;
        }
    }
    CAPTURE(as_it_is, with_moves, refused, required, later_waves, single, missed);
    CHECK(as_it_is > testing_support::instances(800));
    CHECK(with_moves > testing_support::instances(100));
    CHECK(required > testing_support::instances(30));
    CHECK(single > testing_support::instances(60));
    CHECK(missed * 50 <= single);
}
