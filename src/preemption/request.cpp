// SPDX-License-Identifier: Apache-2.0
// Resolves the requirements of a preemptor, and decides which tasks it may evict.
#include "preemption/request.hpp"

#include <gpusched/core/checks.hpp>

#include <algorithm>
#include <string>
#include <utility>

namespace gpusched::preemption::detail {

Request::Request(const Cluster& cluster, TaskId id, const Options& options, const Request* alike) {
    const auto& inv = cluster.inventory();
    const auto i = index(id);
    if (!cluster.contains(id))
        throw InvalidInput(
            bad_value("task", "#" + std::to_string(i), "below " + std::to_string(cluster.task_slots())));
    if (cluster.is_placed(id))
        throw InvalidInput(bad_value("task", gpusched::quoted(cluster.name(id)),
                                     "a pending task; this task runs on node " +
                                         gpusched::quoted(cluster.name(cluster.node_of(id)))));
    const auto& t = inv.tasks;
    task = id;
    gpus = t.gpu_count[i];
    share_milli = t.gpu_share_milli[i];
    fraction = cluster.is_fraction(id);
    borrows = cluster.may_borrow(id);
    cpu_milli = t.cpu_milli[i];
    memory_mib = t.memory_mib[i];
    gpu_memory_mib = gpus > 0 ? t.gpu_memory_mib[i] : 0;
    priority = t.priority[i];
    requirement = t.requirement[i];
    extras = t.extras[i];
    grouped = !inv.memberships(id).empty();
    has_near = !inv.terms(id).near.empty();
    spot = traits_of(options.policy).spot;
    paper = options.score == ScoreForm::paper;
    break_budgets = options.break_budgets;
    job = t.job[i];
    const auto& affinities = inv.task_affinities[t.affinities[i]];
    cpu_local = affinities.cpu_local && gpus > 0;
    const auto& pairs = affinities.hardware_affinity;
    if (!options.qos) {
        level = affinities.guaranteed_level();
        qos = level ? Qos::guaranteed : pairs.empty() ? Qos::none : Qos::best_effort;
    } else {
        qos = *options.qos;
        if (qos == Qos::guaranteed) {
            level = HardwareLevel::socket;
            for (const auto& pair : pairs)
                if (pair.level == HardwareLevel::numa) level = HardwareLevel::numa;
        }
    }
    if (gpus < 2) level.reset();  // one GPU is always local to itself
    now = options.now.value_or(inv.now);
    alpha = options.alpha;
    topology = {options.numa_score, options.socket_score, options.cross_score};
    if (qos == Qos::none) topology = {};
    search_limit = options.search_limit;
    if (gpus < 2) return;
    if (alike != nullptr) {
        table = alike->table;
        return;
    }
    std::vector<std::array<std::uint8_t, 256>> made(inv.hardware.size());
    for (std::size_t h = 0; h < inv.hardware.size(); ++h) {
        made[h].fill(infeasible);
        const auto all = inv.hardware[h].description.gpus();
        if (all > 0xFF) continue;
        for (GpuMask free = 0; free < 256; ++free)
            if ((free & ~all) == 0) made[h][free] = locality(&inv.hardware[h], free);
    }
    if (!made.empty())
        table = std::make_shared<const std::vector<std::array<std::uint8_t, 256>>>(std::move(made));
}

std::uint8_t Request::locality(const HardwareMasks* hardware, GpuMask free) const noexcept {
    if (gpu_count(free) < gpus) return infeasible;
    if (gpus < 2) return 0;
    if (hardware != nullptr) {
        for (const auto mask : hardware->numa)
            if (gpu_count(mask & free) >= gpus) return 0;
        if (admits(1))
            for (const auto mask : hardware->socket)
                if (gpu_count(mask & free) >= gpus) return 1;
    }
    return admits(2) ? 2 : infeasible;
}

bool shares_selection(const Cluster& cluster, TaskId task, TaskId other, GroupKind kind) noexcept {
    const auto& inv = cluster.inventory();
    const auto own = inv.selection_memberships(task), others = inv.selection_memberships(other);
    return std::any_of(own.begin(), own.end(), [&](const Membership& m) {
        return m.is_bound() && inv.group_sets[m.set].kind == kind &&
               std::any_of(others.begin(), others.end(),
                           [&](const Membership& o) { return o.set == m.set && o.is_member(); });
    });
}

bool is_kept(const Cluster& cluster, const Request& request, TaskId task) noexcept {
    if (request.spared != nullptr && request.spared[index(task)] != 0) return true;
    if (request.has_near && shares_selection(cluster, request.task, task, GroupKind::near)) return true;
    const auto& inv = cluster.inventory();
    if (inv.tasks.budgets.empty() || request.break_budgets) return false;
    const auto budgets = inv.budgets_of(task);
    return std::any_of(budgets.begin(), budgets.end(),
                       [&](std::uint32_t b) { return request.allowed_down(inv, b) == 0; });
}

std::int64_t cost_of(const Cluster& cluster, TaskId task, std::int64_t now, const CostFunction& cost) {
    if (!cost) return lost_work(cluster, task, now);
    const auto found = cost(cluster, task, now);
    if (found < 0 || found > largest_cost)
        throw InvalidInput(bad_value("cost", std::to_string(found), "0 to " + std::to_string(largest_cost),
                                     "task " + gpusched::quoted(cluster.name(task))));
    return found;
}

}  // namespace gpusched::preemption::detail
