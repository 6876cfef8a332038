// SPDX-License-Identifier: Apache-2.0
// Never an eviction without a verified placement: all policies, on random snapshots with every kind of constraint on random
// topologies, judged by the naive rules of reference.hpp and by the checker of plans.
#include "support/instances.hpp"
#include "support/plans.hpp"
#include "support/policies.hpp"
#include "support/random_cluster.hpp"

#include <gpusched/preemption/preemption.hpp>

using namespace gpusched;
using namespace gpusched::preemption;

namespace verified_tests {

/// A snapshot in which much waits and much may be evicted.
ClusterSpec random_spec(Rng& rng, double extras = 0, double selected = 0) {
    auto spec = testing_support::random_cluster(rng, {.min_nodes = 1,
                                                      .max_nodes = 5,
                                                      .min_tasks = 6,
                                                      .max_tasks = 22,
                                                      .max_gpus = 8,
                                                      .pending = 0.3,
                                                      .immovable = 0.05,
                                                      .grouped = 0.1,
                                                      .max_request = 8,
                                                      .extras = extras,
                                                      .selected = selected});
    for (auto& task : spec.tasks) {
        if (rng.chance(0.5)) task.preemptible = true;
        if (!task.node && rng.chance(0.6)) task.priority += 100;
    }
    return spec;
}

bool may_leave(const ClusterSpec& spec, std::size_t victim, std::size_t preemptor, bool spot) {
    const auto& v = spec.tasks[victim];
    if (!v.node || v.locked || v.standby || v.daemon) return false;
    if (!v.preemptible.value_or(reference::is_lp(v))) return false;
    // No task leaves for one that needs it near.
    const auto& near = spec.tasks[preemptor].near;
    if (!near.empty() && std::all_of(near.begin(), near.end(),
                                     [&](const auto& term) { return reference::is_member(v, term.group); }))
        return false;
    return spot ? reference::is_lp(v) && !reference::is_lp(spec.tasks[preemptor])
                : v.priority < spec.tasks[preemptor].priority;
}

/// Would the preemptor fit on the node with as many gone as may go there? A gang leaves whole, wherever its members are; where
/// one of them may not leave, or it is the preemptor's own, only as many as it runs beyond `min_members` do.
bool helps_there(const ClusterSpec& spec, std::size_t preemptor, std::size_t node, bool spot) {
    const auto& p = spec.tasks[preemptor];
    auto state = reference::initial(spec);
    const auto on_node = [&](std::size_t task) {
        return std::any_of(state.copies.begin(), state.copies.end(),
                           [&](const reference::Copy& c) { return c.task == task && c.node == node; });
    };
    std::vector<std::size_t> leaving;
    std::map<std::string, std::vector<std::size_t>> of_job;
    for (std::size_t v = 0; v < spec.tasks.size(); ++v)
        if (on_node(v) && may_leave(spec, v, preemptor, spot)) {
            leaving.push_back(v);
            if (!spec.tasks[v].job.empty()) of_job[spec.tasks[v].job].push_back(v);
        }
    std::vector<std::pair<std::vector<std::size_t>, std::string>> bound;  // members, and their job
    for (const auto& [job, here] : of_job) {
        std::size_t running = 0;
        bool breakable = job != p.job;
        for (std::size_t v = 0; v < spec.tasks.size(); ++v) {
            const auto& t = spec.tasks[v];
            if (t.job != job || !t.node) continue;
            ++running;
            breakable = breakable && may_leave(spec, v, preemptor, spot);
            // If the preemptor has a spread constraint, tasks elsewhere count.
            if (!on_node(v) && std::any_of(p.spread.begin(), p.spread.end(), [&](const auto& term) {
                    return reference::is_member(t, term.group);
                }))
                breakable = false;
        }
        if (running < 2 || testing_support::stays_a_gang(spec, job, here)) continue;
        if (!breakable) {
            bound.emplace_back(here, job);
            continue;
        }
        for (std::size_t v = 0; v < spec.tasks.size(); ++v)
            if (spec.tasks[v].job == job && spec.tasks[v].node && !on_node(v)) leaving.push_back(v);
    }
    const std::function<bool(std::size_t, std::vector<std::size_t>)> any =
        [&](std::size_t at, std::vector<std::size_t> stay) {
            if (at < bound.size()) {
                const auto& [members, job] = bound[at];
                for (unsigned set = 0; set < (1u << members.size()); ++set) {
                    std::vector<std::size_t> gone;
                    for (std::size_t i = 0; i < members.size(); ++i)
                        if ((set >> i & 1) != 0) gone.push_back(members[i]);
                    if (!testing_support::stays_a_gang(spec, job, gone)) continue;
                    auto more = stay;
                    for (std::size_t i = 0; i < members.size(); ++i)
                        if ((set >> i & 1) == 0) more.push_back(members[i]);
                    if (any(at + 1, more)) return true;
                }
                return false;
            }
            auto after = state;
            std::erase_if(after.copies, [&](const reference::Copy& c) {
                return std::count(leaving.begin(), leaving.end(), c.task) > 0 &&
                       std::count(stay.begin(), stay.end(), c.task) == 0;
            });
            return reference::obstacle(after, preemptor, node) == "none";
        };
    return any(0, {});
}

template <class Leaves>
reference::State without(const ClusterSpec& spec, Leaves&& leaves) {
    auto state = reference::initial(spec);
    std::erase_if(state.copies, [&](const reference::Copy& c) { return leaves(c.task); });
    return state;
}

const auto policies = [] {
    std::vector<VictimPolicy> found{testing_support::Scattered{}};
    for (const auto policy : testing_support::all_policies()) found.emplace_back(policy);
    return found;
}();

TEST_CASE("no policy evicts without a valid placement, and all find one if it exists") {
    std::map<std::string, int> evicting;
    int fits = 0, nothing = 0, relaxed = 0;
    for (std::uint64_t seed = 0; seed < testing_support::instances<std::uint64_t>(3600); ++seed) {
        Rng rng(seed);
        const auto spec = random_spec(rng, seed % 4 == 3 ? 0.3 : 0, seed % 5 == 2 ? 0.15 : 0);
        const auto cluster = Cluster::build(spec, IdOrder::as_listed);
        const auto untouched = cluster;
        INFO("seed " << seed);
        for (std::size_t t = 0; t < spec.tasks.size(); ++t) {
            if (spec.tasks[t].node || rng.chance(0.5)) continue;
            const auto task = make_id<TaskId>(t);
            const auto before = reference::initial(spec);
            const bool local_cores = spec.tasks[t].cpu_local && spec.tasks[t].gpu_count > 0;
            bool as_it_is = false;
            for (std::size_t n = 0; n < spec.nodes.size(); ++n)
                as_it_is = as_it_is || reference::obstacle(before, t, n) == "none";
            for (const auto& policy : policies) {
                const bool spot = policy == Policy::spot || policy == Policy::spot_exact;
                INFO("task " << spec.tasks[t].name << ", " << policy.name());
                bool helps = false;  // on some node, without its preemptible tasks
                for (std::size_t n = 0; n < spec.nodes.size(); ++n)
                    helps = helps || helps_there(spec, t, n, spot);
                helps = helps && !testing_support::is_incomplete(spec, spec.tasks[t].job);
                const auto result = preempt(cluster, task, {.policy = policy});
                REQUIRE(cluster.same_placement(untouched));
                REQUIRE(result.proven);
                if (!local_cores) REQUIRE(result.decision.has_value() == helps);
                if (!result.decision) {
                    ++nothing;
                    continue;
                }
                const auto& d = *result.decision;
                if (!local_cores) REQUIRE(d.victims.empty() == as_it_is);
                for (const auto victim : d.victims) {
                    const bool member = !spec.tasks[index(victim)].job.empty();
                    REQUIRE((cluster.node_of(victim) == d.node || member));
                    REQUIRE(may_leave(spec, index(victim), t, spot));
                }
                const auto leave = [&](std::size_t v) {
                    return std::find(d.victims.begin(), d.victims.end(), make_id<TaskId>(v)) !=
                           d.victims.end();
                };
                const auto after = without(spec, leave);
                REQUIRE(reference::obstacle(after, t, index(d.node)) == "none");
                if (spec.tasks[t].gpu_count > 0) {
                    const auto sets = reference::gpu_sets(after, t, index(d.node));
                    REQUIRE(std::find(sets.begin(), sets.end(), gpu_list(d.gpus)) != sets.end());
                }
                const auto plan = to_plan(d, task);
                if (!spec.tasks[t].cpu_local) {  // plans cannot be judged by cores
                    testing_support::require_valid(spec, cluster, plan);
                }
                REQUIRE(apply(cluster, plan).node_of(task) == d.node);
                (d.victims.empty() ? fits : evicting[policy.name()]) += 1;
                // No needless eviction: in minimal sets each victim is needed.
                const bool minimal = policy == Policy::imp || policy == Policy::reprieve ||
                                     policy == Policy::spot_exact || !policy.named();
                if (!minimal) continue;
                if (local_cores || (policy == Policy::spot_exact && d.cost == 0)) continue;
                for (const auto victim : d.victims) {
                    if (!spec.tasks[index(victim)].job.empty()) continue;  // it may leave for its gang
                    const auto fewer =
                        without(spec, [&](std::size_t v) { return leave(v) && v != index(victim); });
                    REQUIRE(reference::obstacle(fewer, t, index(d.node)) != "none");
                }
            }
            // Relaxed or tightened by the caller: all resources hold all the same.
            for (const auto qos : {Qos::guaranteed, Qos::best_effort, Qos::none}) {
                const auto& policy = policies[rng.below(policies.size())];
                const auto result = preempt(cluster, task, {.policy = policy, .qos = qos});
                if (!result.decision) continue;
                ++relaxed;
                auto asked = spec;
                asked.tasks[t].hardware_affinity.clear();
                asked.tasks[t].cpu_local = false;
                if (qos == Qos::guaranteed) {
                    bool numa = false;
                    for (const auto& wish : spec.tasks[t].hardware_affinity)
                        numa = numa || wish.level == HardwareLevel::numa;
                    asked.tasks[t].hardware_affinity = {
                        {numa ? HardwareLevel::numa : HardwareLevel::socket, HardwareQos::guaranteed}};
                }
                testing_support::require_valid(asked, cluster, to_plan(*result.decision, task));
            }
        }
        // Gangs: the pending members of a job, or any pending tasks.
        std::vector<TaskId> pods;
        for (const auto task : cluster.tasks())
            if (!cluster.is_placed(task) && !spec.tasks[index(task)].cpu_local && pods.size() < 4)
                pods.push_back(task);
        if (pods.empty()) continue;
        const auto& policy = policies[rng.below(policies.size())];
        GangResult gang;
        try {
            gang = preempt_gang(cluster, pods, {.policy = policy});
        } catch (const InvalidInput&) {  // different network levels
            pods.resize(1);
            gang = preempt_gang(cluster, pods, {.policy = policy});
        }
        REQUIRE(cluster.same_placement(untouched));
        REQUIRE(gang.decision.has_value() == gang.reason.empty());
        if (!gang.decision) continue;
        testing_support::require_valid(spec, cluster, to_plan(*gang.decision, pods));
        evicting["gang"] += !gang.decision->victims.empty();
    }
    std::string text;
    for (const auto& [name, count] : evicting) text += name + " " + std::to_string(count) + "  ";
    CAPTURE(text, fits, nothing, relaxed);
    for (const auto& policy : policies) CHECK(evicting[policy.name()] > testing_support::instances(200));
    CHECK(evicting["gang"] > testing_support::instances(60));  // gangs that can start
    CHECK(fits > testing_support::instances(1000));
    CHECK(nothing > testing_support::instances(1000));
    CHECK(relaxed > testing_support::instances(1000));
}

}  // namespace verified_tests
