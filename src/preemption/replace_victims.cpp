// SPDX-License-Identifier: Apache-2.0
// Places victims again, by units that run together or not at all.
#include "preemption/replace_victims.hpp"

#include <gpusched/allocation/gpu_pickers.hpp>
#include <gpusched/allocation/place.hpp>
#include <gpusched/allocation/rankers.hpp>
#include <gpusched/core/rng.hpp>
#include <gpusched/preemption/preempt.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>

namespace gpusched::preemption::detail {

std::vector<Placement> place_victims_again(const Cluster& cluster, std::span<const TaskId> victims,
                                           std::span<const Placement> placed) {
    const auto& inv = cluster.inventory();
    const auto& t = inv.tasks;
    Cluster after(cluster);
    for (const auto victim : victims) after.remove(victim);
    for (const auto& p : placed) after.assign(p.task, p.node, p.gpus);
    // One victim, or all victims of a job without other running members, which run together or not at all.
    struct Unit {
        std::vector<TaskId> tasks{};
        std::size_t needed = 1;
        std::int64_t priority = INT64_MIN, gpus = 0;
        std::map<SubgroupId, std::int64_t> needed_in{};  // by subgroup of the gang
    };
    std::vector<Unit> units;
    std::map<JobId, std::size_t> unit_of;
    std::map<JobId, std::int64_t> left;
    for (const auto victim : victims)
        if (t.job[index(victim)] != none<JobId>) left[t.job[index(victim)]] = 0;
    if (!left.empty())
        for (const auto task : after.tasks())
            if (const auto job = left.find(t.job[index(task)]); job != left.end() && after.is_placed(task))
                ++job->second;
    for (const auto victim : victims) {
        const auto job = t.job[index(victim)];
        const auto least = job == none<JobId> ? 0 : inv.job_min_members[index(job)];
        const bool together = job != none<JobId> && left[job] == 0;
        auto at = units.size();
        if (together) at = unit_of.try_emplace(job, at).first->second;
        if (at == units.size()) units.emplace_back();
        auto& unit = units[at];
        unit.tasks.push_back(victim);
        unit.needed = !together ? 1 : least == 0 ? unit.tasks.size() : static_cast<std::size_t>(least);
        unit.priority = std::max(unit.priority, t.priority[index(victim)]);
        unit.gpus += cluster.gpu_milli(victim);
        if (const auto in = inv.subgroup_of(victim); together && in != none<SubgroupId>) {
            auto& needed = unit.needed_in[in];
            needed = std::min(needed + 1, inv.subgroups[index(in)].min_members);
        }
    }
    for (auto& unit : units) {
        // A gang that ran with fewer members than it needs may run so again.
        unit.needed = std::min(unit.needed, unit.tasks.size());
        std::sort(unit.tasks.begin(), unit.tasks.end(), [&](TaskId a, TaskId b) {
            return std::tuple(-cluster.gpu_milli(a), a) < std::tuple(-cluster.gpu_milli(b), b);
        });
    }
    const auto key = [](const Unit& unit) {
        return std::tuple(-unit.priority, -unit.gpus, unit.tasks.front());
    };
    std::sort(units.begin(), units.end(), [&](const Unit& a, const Unit& b) { return key(a) < key(b); });
    std::vector<Placement> replaced;
    Rng rng(0);  // unused by this ranker and picker
    for (const auto& unit : units) {
        const auto before = after.checkpoint();
        const auto known = replaced.size();
        for (const auto task : unit.tasks) {
            if (inv.task_affinities[t.affinities[index(task)]].cpu_local && t.gpu_count[index(task)] > 0)
                continue;
            const auto to = allocation::place(after, task, allocation::Packing{}, allocation::ByWish{}, rng);
            if (!to) continue;
            after.assign(task, to->node, to->gpus);
            replaced.push_back({task, to->node, to->gpus});
        }
        auto lacking = unit.needed_in;
        for (auto at = known; at < replaced.size(); ++at)
            if (const auto in = lacking.find(inv.subgroup_of(replaced[at].task)); in != lacking.end())
                --in->second;
        const bool complete =
            std::none_of(lacking.begin(), lacking.end(), [](const auto& one) { return one.second > 0; });
        if (complete && replaced.size() - known >= unit.needed) continue;
        after.rollback(before);
        replaced.resize(known);
    }
    return replaced;
}

void replace_victims(const Cluster& cluster, TaskId preemptor, Decision& decision) {
    if (decision.victims.empty()) return;
    const Placement placed{preemptor, decision.node, decision.gpus};
    decision.replaced = place_victims_again(cluster, decision.victims, {&placed, 1});
    std::erase_if(decision.vacated_nodes, [&](NodeId node) {
        return std::any_of(decision.replaced.begin(), decision.replaced.end(),
                           [&](const Placement& p) { return p.node == node; });
    });
}

}  // namespace gpusched::preemption::detail
