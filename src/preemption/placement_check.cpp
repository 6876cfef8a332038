// SPDX-License-Identifier: Apache-2.0
// Verifies placements and victims, independently of the searches.
#include "preemption/placement_check.hpp"
#include "preemption/gang_table.hpp"

#include <gpusched/core/errors.hpp>
#include <gpusched/model/feasibility.hpp>
#include <gpusched/preemption/preempt.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

namespace gpusched::preemption::detail {

/// The cores of a NUMA node that are free for the preemptor, in thousandths.
///
/// Counts listed cores one by one. Tasks without a list use the remaining cores. Only a Standby task and a
/// borrower share a core.
/// @param first number of the NUMA node's first core
static std::int64_t free_cores(const Cluster& cluster, const HardwareMasks& hardware, const Request& request,
                               const Decision& decision, std::size_t numa, int first) {
    const auto& inv = cluster.inventory();
    const auto& t = inv.tasks;
    const auto& places = hardware.description.numa_nodes;
    const auto list_of = [&](TaskId task) -> const auto& {
        return inv.task_affinities[t.affinities[index(task)]].cores;
    };
    const auto each_holder = [&](const auto& visit) {
        for (const auto task : cluster.tasks_on(decision.node)) {
            const bool used = !t.standby[index(task)], claimed = !used || !cluster.may_borrow(task);
            const auto victim = std::find(decision.victims.begin(), decision.victims.end(), task);
            if (victim == decision.victims.end() && (used || !request.borrows)) visit(task, used, claimed);
        }
    };
    std::int64_t left = 1000 * std::int64_t{places[numa].cores}, only_used = 0, only_claimed = 0;
    for (int core = first; core < first + places[numa].cores; ++core) {
        int uses = 0, claims = 0;
        each_holder([&](TaskId task, bool used, bool claimed) {
            const auto& list = list_of(task);
            if (!list || std::find(list->begin(), list->end(), core) == list->end()) return;
            uses += used;
            claims += claimed;
        });
        left -= 1000 * std::max(uses, claims);
        only_used += 1000 * std::max(0, uses - claims);
        only_claimed += 1000 * std::max(0, claims - uses);
    }
    std::int64_t borrowed = 0, lent = 0;
    each_holder([&](TaskId task, bool used, bool claimed) {
        if (list_of(task)) return;
        // The number of NUMA nodes with its cores, and the position of this one among them.
        std::int64_t parts = 0, mine = -1;
        for (std::size_t i = 0; i < places.size(); ++i) {
            const auto gpus = cluster.gpus_of(task) & ~cluster.devices(decision.node);
            if (gpus != 0 && (places[i].gpus & gpus) == 0) continue;
            if (i == numa) mine = parts;
            ++parts;
        }
        if (mine < 0) return;
        const auto cpu = t.cpu_milli[index(task)];
        const auto amount = cpu / parts + (mine < cpu % parts ? 1 : 0);
        if (used && claimed)
            left -= amount;
        else
            (used ? borrowed : lent) += amount;
    });
    left -= std::max({std::int64_t{0}, borrowed - only_claimed, lent - only_used});
    return std::max<std::int64_t>(0, left);  // an overused NUMA node does not reduce the others
}

/// Returns whether the victims may leave:
/// - Each gang leaves completely, or keeps the `min_members` of its job and subgroups.
/// - Only gangs that leave completely have victims on other nodes.
/// - Gangs of preemptors do not leave completely.
/// - Each budget holds, or the decision lists it as broken.
static bool victims_may_leave(const Cluster& cluster, const Request& request, const Decision& decision,
                              const GangTable* gangs) {
    const auto& inv = cluster.inventory();
    const auto& victims = decision.victims;  // ascending
    const auto leaves = [&](TaskId task) { return std::binary_search(victims.begin(), victims.end(), task); };
    for (auto at = victims.begin(); at != victims.end(); ++at) {
        const auto victim = *at;
        if (!is_potential_victim(cluster, request, victim)) return false;
        const bool elsewhere = cluster.node_of(victim) != decision.node;
        const auto job = inv.tasks.job[index(victim)];
        if (job == none<JobId> || gangs == nullptr) {
            if (elsewhere) return false;
        } else if (std::none_of(victims.begin(), at,
                                [&](TaskId other) { return inv.tasks.job[index(other)] == job; })) {
            std::int64_t staying = 0, leaving = 0;
            bool all_here = true;
            gangs->for_each(job, [&](TaskId task) {
                ++(leaves(task) ? leaving : staying);
                all_here = all_here && (!leaves(task) || cluster.node_of(task) == decision.node);
            });
            const auto needed = inv.job_min_members[index(job)];
            if (staying > 0 && (needed == 0 || staying < needed || !all_here)) return false;
            for (const auto subgroup : inv.subgroups_of(job)) {
                std::int64_t staying_in = 0, leaving_in = 0;
                gangs->for_each(job, [&](TaskId task) {
                    if (inv.subgroup_of(task) == subgroup) ++(leaves(task) ? leaving_in : staying_in);
                });
                if (staying > 0 && leaving_in > 0 && staying_in < inv.subgroups[index(subgroup)].min_members)
                    return false;
            }
            const bool whole = staying == 0, kept = gangs->is_gang(job) && request.never_breaks(job);
            if (whole && (kept || (leaving == 1 && !all_here))) return false;
        }
        for (const auto budget : inv.budgets_of(victim)) {
            const auto holds = [&](TaskId task) {
                const auto its = inv.budgets_of(task);
                return std::find(its.begin(), its.end(), budget) != its.end();
            };
            if (std::any_of(victims.begin(), at, holds)) continue;  // counted already
            std::int64_t listed = 0;
            for (const auto& broken : decision.broken_budgets)
                if (broken.budget == budget) listed = broken.over;
            const auto before = request.down == nullptr ? 0 : request.down[budget];
            const auto allowed = std::max<std::int64_t>(0, inv.budgets[budget].allows() - before);
            const auto over = std::count_if(at, victims.end(), holds) - allowed;
            if (std::max<std::int64_t>(0, over) != listed || (listed > 0 && !request.break_budgets))
                return false;
        }
    }
    return true;
}

bool placement_holds(const Cluster& cluster, const Request& request, const Decision& decision,
                     const GangTable* gangs) {
    const auto& inv = cluster.inventory();
    const auto& t = inv.tasks;
    const auto node = decision.node;
    const auto n = index(node);
    const auto devices = decision.gpus & cluster.devices(node), whole = decision.gpus & ~devices;
    if (gpu_count(whole) != request.gpus) return false;
    if ((whole & ~cluster.healthy_gpus(node)) != 0) return false;
    if (!inv.nodes.receives(node) || !request.may_run_on(inv, node)) return false;
    if (!victims_may_leave(cluster, request, decision, gangs)) return false;

    const auto* const hardware =
        inv.nodes.hardware[n] == NodeTable::no_hardware ? nullptr : &inv.hardware[inv.nodes.hardware[n]];
    auto cpu = inv.nodes.cpu_milli[n], memory = inv.nodes.memory_mib[n];
    auto cpu_claimed = cpu;
    std::array<int, max_gpus_per_node> share{}, claimed{};
    std::array<std::int64_t, max_gpus_per_node> gpu_memory{};
    for (const auto task : cluster.tasks_on(node)) {
        if (std::find(decision.victims.begin(), decision.victims.end(), task) != decision.victims.end())
            continue;
        const auto i = index(task);
        memory -= t.memory_mib[i];
        if (!t.standby[i]) cpu -= t.cpu_milli[i];
        if (t.standby[i] || !cluster.may_borrow(task)) cpu_claimed -= t.cpu_milli[i];
        for_each_gpu(cluster.gpus_of(task), [&](int g) {
            if (!t.standby[i]) share[g] += t.gpu_share_milli[i];
            if (t.standby[i] || !cluster.may_borrow(task)) claimed[g] += t.gpu_share_milli[i];
            gpu_memory[g] += t.gpu_memory_mib[i];
        });
    }
    if (memory < request.memory_mib || cpu < request.cpu_milli) return false;
    if (!request.borrows && cpu_claimed < request.cpu_milli) return false;
    bool good = true;
    for_each_gpu(whole, [&](int g) {
        const int available = whole_gpu_milli - request.share_milli;
        good = good && share[g] <= available && (request.borrows || claimed[g] <= available);
        const auto capacity = inv.nodes.gpu_memory_mib[n];
        good = good && (capacity < 0 || capacity - gpu_memory[g] >= request.gpu_memory_mib);
    });
    if (!good) return false;
    if (request.level) {
        if (hardware == nullptr) return false;
        const auto& places = *request.level == HardwareLevel::numa ? hardware->numa : hardware->socket;
        if (std::none_of(places.begin(), places.end(), [&](GpuMask m) { return (whole & ~m) == 0; }))
            return false;
    }
    if (request.cpu_local) {
        if (hardware == nullptr) return false;
        const auto& numa = hardware->description.numa_nodes;
        std::int64_t local = 0;
        for (std::size_t i = 0, first = 0; i < numa.size();
             first += static_cast<std::size_t>(numa[i++].cores))
            if ((numa[i].gpus & whole) != 0)
                local += free_cores(cluster, *hardware, request, decision, i, static_cast<int>(first));
        if (local < request.cpu_milli) return false;
    }
    if (request.extras != 0 || devices != 0) {
        const auto& requested = inv.extras[request.extras];
        auto held = inv.nodes.failed_gpus[n];
        std::vector<std::int64_t> left;
        for (const auto& [resource, amount] : requested.resources)
            left.push_back(inv.node_resources[n * inv.resource_names.size() + resource] - amount);
        for (const auto task : cluster.tasks_on(node)) {
            if (std::find(decision.victims.begin(), decision.victims.end(), task) != decision.victims.end())
                continue;
            held |= cluster.gpus_of(task);
            for (const auto& [resource, amount] : inv.extras[t.extras[index(task)]].resources)
                for (std::size_t r = 0; r < left.size(); ++r)
                    if (requested.resources[r].resource == resource) left[r] -= amount;
        }
        if ((devices & held) != 0 || !gpusched::detail::are_of_one_class(inv, requested, node, devices) ||
            std::any_of(left.begin(), left.end(), [](std::int64_t free) { return free < 0; }))
            return false;
    }
    if (!request.grouped) return true;
    Cluster after(cluster);
    for (const auto victim : decision.victims) after.remove(victim);
    return find_group_obstacle(after, request.task, node) == Obstacle::none;
}

void require_placement(const Cluster& cluster, const Request& request, const Decision& decision,
                       const GangTable* gangs) {
    if (!placement_holds(cluster, request, decision, gangs))
        throw InternalError(
            "preemption: the placement of task " + gpusched::quoted(cluster.name(request.task)) +
            " on node " + gpusched::quoted(cluster.name(decision.node)) +
            " failed verification; do not evict tasks for it. Unless a cost function changed the "
            "cluster, this is an error in gpusched: please report it");
}

}  // namespace gpusched::preemption::detail
