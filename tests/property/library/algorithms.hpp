// SPDX-License-Identifier: Apache-2.0
// Every algorithm that plans, on one cluster: the checker accepts what it plans.
#pragma once

#include "support/plans.hpp"
#include "support/policies.hpp"

#include <gpusched/gpusched.hpp>

namespace testing_support {

/// How often each algorithm did what, and how often a plan had what.
using Seen = std::map<std::string, std::size_t>;

class Algorithms {
  public:
    Algorithms(const gpusched::ClusterSpec& spec, gpusched::Cluster& cluster, std::uint64_t seed, Seen& seen)
        : spec_(spec), cluster_(cluster), seed_(seed), seen_(seen) {
        cluster_.keep_events();
    }

    void check_all() {
        using namespace gpusched;
        consolidations();
        std::vector<std::vector<TaskId>> waiting;  // by job; tasks of no job are alone
        std::map<JobId, std::size_t> of_job;
        std::size_t decisions = 0;
        for (const auto task : cluster_.tasks()) {
            const auto asked = cluster_.task_spec(task);
            if (asked.node || asked.cpu_local) continue;  // the checker does not count cores
            const auto job = cluster_.inventory().tasks.job[index(task)];
            const auto [group, is_new] = of_job.try_emplace(job, waiting.size());
            if (is_new || job == none<JobId>)
                waiting.push_back({task});
            else if (cluster_.task_spec(waiting[group->second].front()).network_affinity ==
                     asked.network_affinity)
                waiting[group->second].push_back(task);
            if (++decisions <= 12) one_task(task);
        }
        std::ranges::stable_sort(waiting, std::greater{}, &std::vector<TaskId>::size);
        std::vector<allocation::GangRequest> jobs;
        for (const auto& pods : waiting) {
            if (jobs.size() == 8) break;
            jobs.push_back({pods, {}});
            one_gang(pods);
        }
        const auto together = allocation::allocate_many(cluster_, jobs, {.seed = seed_, .iterations = 100});
        check(allocation::to_plan(together), "allocate_many");
        seen_["jobs together"] += static_cast<std::size_t>(together.placed);
    }

  private:
    void check(const gpusched::Plan& plan, std::string_view algorithm) const {
        INFO(algorithm);
        require_valid(spec_, cluster_, plan);
        const auto after = apply(cluster_, plan);
        for (const auto node : plan.vacated_nodes) REQUIRE(after.occupants(node) == 0);
    }

    void consolidations() {
        for (const auto& preset : gpusched::enumerators<gpusched::consolidation::Preset>()) {
            const auto plan =
                gpusched::consolidation::consolidate(cluster_, {.preset = preset.value, .seed = seed_}).plan;
            check(plan, preset.name);
            seen_["vacated"] += plan.vacated_nodes.size();
            seen_["moves"] += plan.moves.size();
            for (const auto& move : plan.moves) {
                const auto& terms = cluster_.inventory().terms(move.task);
                seen_["restarts"] += move.how == gpusched::MoveMode::restart;
                seen_["moves of members"] += !terms.groups.empty();
                seen_["moves of spread tasks"] += !terms.spread.empty();
                seen_["moves of devices"] += (cluster_.gpus_of(move.task) & cluster_.devices(move.from)) != 0;
            }
        }
    }

    void one_task(gpusched::TaskId task) {
        using namespace gpusched;
        const auto placed = [&](const std::optional<allocation::Destination>& found, const char* by) {
            if (!found) return;
            Plan plan;
            plan.placements.push_back({task, found->node, found->gpus});
            check(plan, by);
            ++seen_["placed"];
        };
        for (const char* ranker : {"best_fit", "fgd"})
            placed(allocation::place(cluster_, task, {.rankers = {ranker}}), ranker);
        placed(two_choices_(cluster_, task, rng_), "power of two choices");
        for (const auto policy : all_policies()) {
            const auto result = preemption::preempt(cluster_, task, {.policy = policy});
            if (policy == preemption::Policy::imp)
                REQUIRE((followed_.decide(cluster_, task) != nullptr) == result.decision.has_value());
            if (!result.decision) continue;
            check(preemption::to_plan(*result.decision, task), enum_name(policy));
            seen_["evicted"] += result.decision->victims.size();
        }
    }

    void one_gang(const std::vector<gpusched::TaskId>& pods) {
        using namespace gpusched;
        const auto alone = allocation::allocate(cluster_, pods);
        check(allocation::to_plan(alone), "allocate");
        seen_["allocated"] += alone.placed;
        seen_["gangs"] += alone.placed && pods.size() > 1;
        const auto made = admission::admit(cluster_, pods, {.evictions = false});
        check(made.plan, "admit");
        seen_["with moves"] += !made.plan.moves.empty();
        const auto gang = preemption::preempt_gang(cluster_, pods, {.policy = preemption::Policy::spot});
        if (!gang.decision) return;
        check(preemption::to_plan(*gang.decision, pods), "preempt_gang");
        seen_["gang victims"] += gang.decision->victims.size();
    }

    const gpusched::ClusterSpec& spec_;
    gpusched::Cluster& cluster_;
    std::uint64_t seed_;
    Seen& seen_;
    gpusched::Rng rng_{seed_};
    decltype(gpusched::allocation::PowerOfD{}) two_choices_{};
    gpusched::preemption::PreemptionIndex followed_{{.policy = gpusched::preemption::Policy::imp}};
};

}  // namespace testing_support
