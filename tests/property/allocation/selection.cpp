// SPDX-License-Identifier: Apache-2.0
// Gangs whose pods avoid, want near or spread groups: every allocation can be carried out, and no allocation is proven impossible
// that enumeration finds.
#include "support/instances.hpp"
#include "support/plans.hpp"
#include "support/random_cluster.hpp"

#include <gpusched/allocation/allocation.hpp>

using namespace gpusched;
using namespace gpusched::allocation;
using testing_support::instances;

namespace {

/// Can the tasks from `next` on be placed, one after the other, somewhere?
bool can_place(reference::State& state, std::size_t next) {
    if (next == state.spec->tasks.size()) return true;
    for (std::size_t n = 0; n < state.spec->nodes.size(); ++n) {
        if (reference::obstacle(state, next, n) != "none") continue;
        state.copies.push_back({next, n, reference::gpu_sets(state, next, n).front()});
        const bool rest = can_place(state, next + 1);
        state.copies.pop_back();
        if (rest) return true;
    }
    return false;
}

TaskSpec random_pod(Rng& rng) {
    TaskSpec pod;
    pod.gpu_count = rng.between(0, 1);
    pod.cpu_milli = rng.between(0, 4) * 500;
    pod.memory_mib = rng.between(0, 4) * 256;
    const auto group = [&] { return "group" + std::to_string(rng.between(0, 2)); };
    const auto level = [&] {
        return rng.chance(0.3) ? node_level : first_label_level + static_cast<Level>(rng.between(0, 1));
    };
    pod.groups = {group()};
    if (rng.chance(0.5)) pod.groups.push_back(group());
    const auto kind = rng.below(4);
    if (kind == 0 || kind == 3) pod.avoid = {{group(), level()}};
    if (kind == 1 || kind == 3) pod.near = {{rng.chance(0.7) ? pod.groups[0] : group(), level()}};
    if (kind == 2 || kind == 3)
        pod.spread = {{.group = rng.chance(0.8) ? pod.groups[0] : group(),
                       .level = level(),
                       .max_skew = rng.between(1, 2),
                       .min_domains = rng.between(1, 3)}};
    return pod;
}

}  // namespace

TEST_CASE("gangs with avoid, near and spread constraints are placed if possible") {
    int placed = 0, refused = 0, missed = 0;
    std::map<std::string, int> reasons;
    for (std::uint64_t seed = 0; seed < instances<std::uint64_t>(6'000); ++seed) {
        Rng rng(seed);
        auto how = testing_support::tiny_cluster;
        how.selected = 0.15;
        const auto base = testing_support::random_cluster(rng, how);
        JobRequest job{"gang", {{rng.between(1, 4), random_pod(rng)}}};
        if (rng.chance(0.3)) job.pods.push_back({rng.between(1, 2), random_pod(rng)});
        const auto with = with_job(Cluster::build(base), job);
        const auto spec = with.cluster.to_spec();
        INFO("seed " << seed);
        auto state = reference::initial(spec);
        const bool possible = can_place(state, base.tasks.size());
        const auto found = allocate(with.cluster, with.pods, {});
        INFO("reason " << found.reason);
        if (!found.placed) {
            if (found.proven) REQUIRE_FALSE(possible);
            REQUIRE_FALSE(found.reason.empty());
            missed += possible;
            ++refused;
            ++reasons[enum_name(found.obstacle)];
            continue;
        }
        ++placed;
        const auto plan = to_plan(found);
        testing_support::require_valid(spec, with.cluster, plan);
        const auto after = apply(with.cluster, plan);
        for (const auto& p : found.pods) REQUIRE(after.node_of(p.task) == p.node);
    }
    std::string text;
    for (const auto& [reason, count] : reasons) text += reason + " " + std::to_string(count) + "  ";
    CAPTURE(placed, refused, missed, text);
    CHECK(placed > instances(1'000));
    CHECK(refused > instances(1'000));
    CHECK(missed < refused / 20);
    for (const char* reason : {"avoid", "near", "spread"}) {
        INFO(reason);
        CHECK(reasons[reason] > 0);
    }
}
