// SPDX-License-Identifier: Apache-2.0
#include <gpusched/config.hpp>
#include <gpusched/consolidation/ejection_rules.hpp>

#include <algorithm>
#include <tuple>
#include <utility>

namespace gpusched::consolidation {

namespace detail {

ExtrasAfter::ExtrasAfter(const Cluster& cluster, const Extras& extras, NodeId node)
    : cluster_(&cluster), extras_(&extras), node_(node), devices_(cluster.free_devices(node)) {
    for (const auto& [resource, amount] : extras.resources)
        short_.push_back(amount - cluster.resource_free(node, resource));
}

void ExtrasAfter::leave(TaskId victim) noexcept {
    const auto& inv = cluster_->inventory();
    for (const auto& [resource, amount] : inv.extras[inv.tasks.extras[index(victim)]].resources)
        for (std::size_t i = 0; i < short_.size(); ++i)
            if (extras_->resources[i].resource == resource) short_[i] -= amount;
    devices_ |= cluster_->gpus_of(victim) & cluster_->devices(node_) & ~inv.nodes.failed_gpus[index(node_)];
}

GPUSCHED_EXPORT bool ExtrasAfter::fits() const noexcept {
    if (std::any_of(short_.begin(), short_.end(), [](std::int64_t lacks) { return lacks > 0; })) return false;
    return extras_->device_count == 0 ||
           gpusched::detail::choose_devices(cluster_->inventory(), *extras_, node_, devices_) != 0;
}

GPUSCHED_EXPORT RoomAfter::RoomAfter(const Cluster& cluster, TaskId task, NodeId node)
    : cluster_(cluster), node_(node), gpus_(candidate_gpus(cluster, task, node)),
      wanted_(cluster.inventory().tasks.gpu_count[index(task)]),
      share_(cluster.inventory().tasks.gpu_share_milli[index(task)]), lent_(cluster.lent_to(task)),
      cpu_short_(cluster.inventory().tasks.cpu_milli[index(task)] - cluster.cpu_free_milli(node, lent_)),
      memory_short_(cluster.inventory().tasks.memory_mib[index(task)] - cluster.memory_free_mib(node)) {
    const auto& inv = cluster.inventory();
    if (const auto extras = inv.tasks.extras[index(task)]; extras != 0)
        extras_.emplace(cluster, inv.extras[extras], node);
}

GPUSCHED_EXPORT void RoomAfter::leave(TaskId victim) noexcept {
    const auto& t = cluster_.inventory().tasks;
    cpu_short_ -= t.cpu_milli[index(victim)];
    memory_short_ -= t.memory_mib[index(victim)];
    if (extras_ && t.extras[index(victim)] != 0) extras_->leave(victim);
    const auto held = static_cast<GpuMask>(cluster_.gpus_of(victim) & cluster_.healthy_gpus(node_));
    if (!cluster_.is_fraction(victim)) {
        gpus_ |= held;
        return;
    }
    for_each_gpu(held, [&](int g) {
        auto& freed = freed_[static_cast<std::size_t>(g)];
        freed = static_cast<std::int16_t>(freed + t.gpu_share_milli[index(victim)]);
        if (cluster_.gpu_free_milli(node_, g, lent_) + freed >= share_) gpus_ |= gpu_bit(g);
    });
}

bool easier(const Cluster& cluster, TaskId victim, TaskId task) noexcept {
    const auto& cpu = cluster.inventory().tasks.cpu_milli;
    const auto a = cluster.gpu_milli(victim), b = cluster.gpu_milli(task);
    return a != b ? a < b : cpu[index(victim)] < cpu[index(task)];
}

}  // namespace detail

GPUSCHED_EXPORT bool FirstVictims::operator()(const Cluster& cluster, TaskId task, NodeId node,
                                              std::span<const Victim> movable,
                                              std::vector<Victim>& victims) const {
    detail::RoomAfter room(cluster, task, node);
    victims.assign(movable.begin(), movable.end());
    for (const auto& victim : movable) room.leave(victim.task);
    return room.fits();
}

GPUSCHED_EXPORT bool EasierVictims::operator()(const Cluster& cluster, TaskId task, NodeId node,
                                               std::span<const Victim> movable,
                                               std::vector<Victim>& victims) const {
    const auto& cpu = cluster.inventory().tasks.cpu_milli;
    victims.clear();
    for (const auto& candidate : movable)
        if (detail::easier(cluster, candidate.task, task)) victims.push_back(candidate);
    if (victims.empty()) return false;
    const detail::RoomAfter before(cluster, task, node);
    auto all = before;
    for (const auto& victim : victims) all.leave(victim.task);
    if (!all.fits()) return false;
    // Ascending by what it costs; then the best one, the best two, or the largest first until it fits.
    const auto size = [&](const Victim& v) {
        return std::tuple(!v.moved, cluster.gpu_milli(v.task), cpu[index(v.task)], v.task);
    };
    std::sort(victims.begin(), victims.end(),
              [&](const Victim& a, const Victim& b) { return size(a) < size(b); });
    for (const auto& victim : victims) {
        auto room = before;
        room.leave(victim.task);
        if (room.fits()) {
            victims.assign(1, Victim(victim));
            return true;
        }
    }
    if (victims.size() > 2) {
        std::pair<std::size_t, std::size_t> best{};
        std::tuple least{2, INT64_MAX, INT64_MAX};
        const auto considered = std::min<std::size_t>(victims.size(), 16);
        for (std::size_t i = 0; i < considered; ++i)
            for (std::size_t j = i + 1; j < considered; ++j) {
                const auto &a = victims[i], &b = victims[j];
                const std::tuple sum{!a.moved + !b.moved,
                                     cluster.gpu_milli(a.task) + cluster.gpu_milli(b.task),
                                     cpu[index(a.task)] + cpu[index(b.task)]};
                if (sum >= least) continue;
                auto room = before;
                room.leave(a.task);
                room.leave(b.task);
                if (room.fits()) least = sum, best = {i, j};
            }
        if (best.second != 0) {
            victims.assign({Victim(victims[best.second]), Victim(victims[best.first])});
            return true;
        }
    }
    std::sort(victims.begin(), victims.end(), [&](const Victim& a, const Victim& b) {
        return std::tuple(-cluster.gpu_milli(a.task), size(a)) <
               std::tuple(-cluster.gpu_milli(b.task), size(b));
    });
    auto room = before;
    std::size_t count = 0;
    while (!room.fits()) room.leave(victims[count++].task);
    victims.resize(count);
    return true;
}

}  // namespace gpusched::consolidation
