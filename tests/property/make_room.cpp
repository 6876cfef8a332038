// make_room on random snapshots with every kind of constraint: the checker accepts every plan, nothing is half done, and room
// that one single move makes is never missed.
#include "support/catch.hpp"
#include "support/random_cluster.hpp"

#include <gpusched/allocation/job_request.hpp>
#include <gpusched/consolidation/make_room.hpp>
#include <gpusched/model/apply.hpp>
#include <gpusched/verify/plan.hpp>

#include <algorithm>
#include <string>

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

TEST_CASE("room for gangs on 4,000 random snapshots") {
    int as_it_is = 0, with_moves = 0, refused = 0, required = 0, later_waves = 0, missed = 0, single = 0;
    for (std::uint64_t seed = 0; seed < 4000; ++seed) {
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
        const auto with = allocation::with_job(Cluster::build(base), {"gang", {pod}});
        const auto spec = with.cluster.to_spec();
        allocation::AllocateOptions options;
        if (rng.chance(0.5)) options.mode = NetworkMode::required;
        INFO("seed " << seed);
        const auto room = consolidation::make_room(with.cluster, with.pods, options);
        const auto plan = to_spec(room.plan, with.cluster);
        const auto report = verify::plan(spec, plan);
        INFO((report.ok ? "" : report.violations.front()));
        REQUIRE(report.ok);
        if (!room.allocation.placed) {
            REQUIRE(room.plan == Plan{});
            REQUIRE_FALSE(room.allocation.reason.empty());
            ++refused;
            if (pod.pod.anti_affinity.empty() && one_move_helps(spec, with.cluster, with.pods, options))
                ++missed;
            continue;
        }
        REQUIRE(room.plan.placements.size() == with.pods.size());
        REQUIRE(room.allocation.pods == room.plan.placements);
        const auto after = apply(with.cluster, room.plan);
        for (const auto& p : room.plan.placements) REQUIRE(after.node_of(p.task) == p.node);
        if (options.mode == NetworkMode::required) REQUIRE(room.allocation.entropy == 0);
        if (room.plan.moves.empty()) {
            REQUIRE(allocation::allocate(with.cluster, with.pods, options).placed);
            ++as_it_is;
        } else {
            REQUIRE_FALSE(allocation::allocate(with.cluster, with.pods, options).placed);
            ++with_moves;
            required += options.mode == NetworkMode::required;
            later_waves += room.plan.waves > 1;
            single += room.plan.moves.size() == 1;
        }
    }
    CAPTURE(as_it_is, with_moves, refused, required, later_waves, single, missed);
    CHECK(as_it_is > 800);
    CHECK(with_moves > 100);
    CHECK(required > 30);
    CHECK(single > 40);
    CHECK(missed * 20 <= with_moves);
}
