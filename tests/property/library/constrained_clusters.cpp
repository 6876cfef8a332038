// SPDX-License-Identifier: Apache-2.0
// All algorithms on generated clusters that hold every kind of constraint: what they plan is accepted by the checker.
#include "support/instances.hpp"
#include "support/plans.hpp"
#include "support/policies.hpp"

#include <gpusched/gpusched.hpp>

using namespace gpusched;
using namespace testing_support;

namespace {

void check(const ClusterSpec& spec, const Cluster& cluster, const Plan& plan, const char* algorithm) {
    INFO(algorithm);
    require_valid(spec, cluster, plan);
}

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
    std::map<std::string, std::size_t> seen;
    for (std::uint64_t seed = 1; seed <= instances<std::uint64_t>(200); ++seed) {
        INFO("seed " << seed);
        Rng rng(seed);
        const auto spec = random_constrained(seed, rng);
        auto cluster = Cluster::build(spec);
        for (const auto preset :
             {consolidation::Preset::ipc, consolidation::Preset::fast, consolidation::Preset::best}) {
            const auto result = consolidation::consolidate(cluster, {.preset = preset, .seed = seed});
            check(spec, cluster, result.plan, "consolidate");
            seen["vacated"] += result.plan.vacated_nodes.size();
            for (const auto& move : result.plan.moves) {
                const auto& terms = cluster.inventory().terms(move.task);
                seen["restarts"] += move.how == MoveMode::restart;
                seen["moves of members"] += !terms.groups.empty();
                seen["moves of spread tasks"] += !terms.spread.empty();
                seen["moves of devices"] += (cluster.gpus_of(move.task) & cluster.devices(move.from)) != 0;
            }
        }
        cluster.keep_events();
        preemption::PreemptionIndex followed({.policy = preemption::Policy::imp});
        std::map<JobId, std::vector<TaskId>> waiting;
        std::size_t decisions = 0;
        for (const auto task : cluster.tasks()) {
            if (cluster.is_placed(task)) continue;
            waiting[cluster.inventory().tasks.job[index(task)]].push_back(task);
            if (++decisions > 12) continue;
            for (const char* ranker : {"best_fit", "fgd"}) {
                const auto found = allocation::place(cluster, task, {.rankers = {ranker}});
                if (!found) continue;
                Plan plan;
                plan.placements.push_back({task, found->node, found->gpus});
                check(spec, cluster, plan, ranker);
                ++seen["placed"];
            }
            for (const auto policy : testing_support::all_policies()) {
                const auto result = preemption::preempt(cluster, task, {.policy = policy});
                if (policy == preemption::Policy::imp)
                    REQUIRE((followed.decide(cluster, task) != nullptr) == result.decision.has_value());
                if (!result.decision) continue;
                check(spec, cluster, preemption::to_plan(*result.decision, task), enum_name(policy));
                seen["evicted"] += result.decision->victims.size();
            }
        }
        std::vector<allocation::GangRequest> jobs;
        for (const auto& [job, pods] : waiting) {
            if (jobs.size() == 8) break;
            jobs.push_back({pods, {}});
            const auto alone = allocation::allocate(cluster, pods);
            check(spec, cluster, allocation::to_plan(alone), "allocate");
            seen["allocated"] += alone.placed;
            const auto made = admission::admit(cluster, pods, {.evictions = false});
            check(spec, cluster, made.plan, "admit");
            seen["with moves"] += !made.plan.moves.empty();
            const auto gang = preemption::preempt_gang(cluster, pods, {.policy = preemption::Policy::spot});
            if (!gang.decision) continue;
            check(spec, cluster, preemption::to_plan(*gang.decision, pods), "preempt_gang");
            seen["gang victims"] += gang.decision->victims.size();
        }
        const auto together = allocation::allocate_many(cluster, jobs, {.seed = seed, .iterations = 100});
        check(spec, cluster, allocation::to_plan(together), "allocate_many");
        seen["jobs together"] += static_cast<std::size_t>(together.placed);
    }
    for (const char* kind :
         {"vacated", "restarts", "moves of members", "moves of spread tasks", "moves of devices", "placed",
          "evicted", "allocated", "with moves", "gang victims", "jobs together"}) {
        INFO(kind);
        CHECK(seen[kind] > 0);
    }
}
