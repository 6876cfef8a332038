// SPDX-License-Identifier: Apache-2.0
// Partitioners and ejection rules.
#include <gpusched/config.hpp>
#include <gpusched/consolidation/exchange_search.hpp>
#include <gpusched/consolidation/policies.hpp>
#include <gpusched/consolidation/scope.hpp>

#include <numeric>

namespace gpusched::consolidation {

namespace detail {

// Cuts nodes into consecutive groups of at most `size` and nearly equal size.
static void cut(std::span<const NodeId> nodes, std::size_t size, Partition& out) {
    const auto parts = (nodes.size() + size - 1) / size;
    for (std::size_t i = 0; i < parts; ++i)
        out.emplace_back(nodes.begin() + static_cast<std::ptrdiff_t>(nodes.size() * i / parts),
                         nodes.begin() + static_cast<std::ptrdiff_t>(nodes.size() * (i + 1) / parts));
}

// Sorts nodes by the ranks of their domains, from the root down; nodes of one domain keep their order.
static void sort_by_position(const Cluster& cluster, std::vector<NodeId>& nodes,
                             const std::vector<std::vector<std::uint64_t>>& rank) {
    const auto& inv = cluster.inventory();
    std::stable_sort(nodes.begin(), nodes.end(), [&](NodeId a, NodeId b) {
        for (Level level = 0; level < inv.network_levels(); ++level) {
            const auto& r = rank[static_cast<std::size_t>(level)];
            const auto x = r[index(inv.domain(level, a))], y = r[index(inv.domain(level, b))];
            if (x != y) return x < y;
        }
        return false;
    });
}

}  // namespace detail

GPUSCHED_EXPORT Partition RandomGroups::operator()(const Cluster& cluster, std::size_t partition_size,
                                                   Rng& rng) const {
    std::vector<NodeId> nodes(cluster.nodes().begin(), cluster.nodes().end());
    rng.shuffle(std::span(nodes));
    Partition groups;
    for (std::size_t i = 0; i < nodes.size(); i += partition_size)
        groups.emplace_back(nodes.begin() + static_cast<std::ptrdiff_t>(i),
                            nodes.begin() +
                                static_cast<std::ptrdiff_t>(std::min(nodes.size(), i + partition_size)));
    return groups;
}

GPUSCHED_EXPORT Partition ByGpuModel::operator()(const Cluster& cluster, std::size_t, Rng&) const {
    Partition groups;
    for (const auto& pool : components(cluster)) {
        const auto parts = (pool.size() + largest_group - 1) / largest_group;
        const auto first = groups.size();
        groups.resize(first + parts);
        for (std::size_t i = 0; i < pool.size(); ++i)
            groups[first + i / dealt_together % parts].push_back(pool[i]);
    }
    return groups;
}

GPUSCHED_EXPORT Partition BySwitch::operator()(const Cluster& cluster, std::size_t partition_size,
                                               Rng&) const {
    const auto& inv = cluster.inventory();
    Partition groups;
    for (auto& pool : components(cluster)) {
        std::vector<std::vector<std::uint64_t>> rank(static_cast<std::size_t>(inv.network_levels()));
        for (std::size_t l = 0; l < rank.size(); ++l) {
            rank[l].resize(inv.domain_count(static_cast<Level>(l)));
            std::iota(rank[l].begin(), rank[l].end(), std::uint64_t{0});
        }
        detail::sort_by_position(cluster, pool, rank);
        const Level deepest = inv.network_levels() - 1;
        for (std::size_t i = 0; i < pool.size();) {
            auto end = i;
            while (end < pool.size()) {  // adds one domain, unless the group would grow too large
                auto next = end + 1;
                while (deepest >= 0 && next < pool.size() &&
                       inv.domain(deepest, pool[next]) == inv.domain(deepest, pool[end]))
                    ++next;
                if (end > i && next - i > partition_size) break;
                end = next;
            }
            groups.emplace_back(pool.begin() + static_cast<std::ptrdiff_t>(i),
                                pool.begin() + static_cast<std::ptrdiff_t>(end));
            i = end;
        }
    }
    return groups;
}

GPUSCHED_EXPORT Partition ByLocality::operator()(const Cluster& cluster, std::size_t partition_size,
                                                 Rng& rng) const {
    const auto& inv = cluster.inventory();
    // The domains of every level get random ranks.
    std::vector<std::vector<std::uint64_t>> rank(static_cast<std::size_t>(inv.network_levels()));
    for (std::size_t l = 0; l < rank.size(); ++l) {
        rank[l].resize(inv.domain_count(static_cast<Level>(l)));
        for (auto& r : rank[l]) r = rng();
    }
    Partition groups;
    for (auto& pool : components(cluster)) {
        rng.shuffle(std::span(pool));
        detail::sort_by_position(cluster, pool, rank);
        detail::cut(pool, partition_size, groups);
    }
    return groups;
}

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

GPUSCHED_EXPORT CapacityAfter::CapacityAfter(const Cluster& cluster, TaskId task, NodeId node)
    : cluster_(cluster), node_(node), gpus_(candidate_gpus(cluster, task, node)),
      requested_(cluster.inventory().tasks.gpu_count[index(task)]),
      share_(cluster.inventory().tasks.gpu_share_milli[index(task)]), lent_(cluster.lent_to(task)),
      cpu_short_(cluster.inventory().tasks.cpu_milli[index(task)] - cluster.cpu_free_milli(node, lent_)),
      memory_short_(cluster.inventory().tasks.memory_mib[index(task)] - cluster.memory_free_mib(node)) {
    const auto& inv = cluster.inventory();
    if (const auto extras = inv.tasks.extras[index(task)]; extras != 0)
        extras_.emplace(cluster, inv.extras[extras], node);
}

GPUSCHED_EXPORT void CapacityAfter::leave(TaskId victim) noexcept {
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
    detail::CapacityAfter rest(cluster, task, node);
    victims.assign(movable.begin(), movable.end());
    for (const auto& victim : movable) rest.leave(victim.task);
    return rest.fits();
}

GPUSCHED_EXPORT bool EasierVictims::operator()(const Cluster& cluster, TaskId task, NodeId node,
                                               std::span<const Victim> movable,
                                               std::vector<Victim>& victims) const {
    const auto& cpu = cluster.inventory().tasks.cpu_milli;
    victims.clear();
    for (const auto& candidate : movable)
        if (detail::easier(cluster, candidate.task, task)) victims.push_back(candidate);
    if (victims.empty()) return false;
    const detail::CapacityAfter before(cluster, task, node);
    auto all = before;
    for (const auto& victim : victims) all.leave(victim.task);
    if (!all.fits()) return false;
    if (victims.size() == 1) return true;
    // In ascending order: the best one, else the best two of 16, else the largest first until the task fits.
    const auto size = [&](const Victim& v) {
        return std::tuple(!v.moved, cluster.gpu_milli(v.task), cpu[index(v.task)], v.task);
    };
    std::sort(victims.begin(), victims.end(),
              [&](const Victim& a, const Victim& b) { return size(a) < size(b); });
    for (const auto& victim : victims) {
        auto rest = before;
        rest.leave(victim.task);
        if (rest.fits()) {
            victims.front() = victim;
            victims.resize(1);
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
                auto rest = before;
                rest.leave(a.task);
                rest.leave(b.task);
                if (rest.fits()) least = sum, best = {i, j};
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
    auto rest = before;
    std::size_t count = 0;
    while (!rest.fits()) rest.leave(victims[count++].task);
    victims.resize(count);
    return true;
}

GPUSCHED_EXPORT bool detail::RandomVictims::operator()(const Cluster& cluster, TaskId task, NodeId node,
                                                       std::span<const Victim> movable,
                                                       std::vector<Victim>& victims) const {
    const CapacityAfter before(cluster, task, node);
    victims.assign(movable.begin(), movable.end());
    rng->shuffle(std::span(victims));
    const auto cost = [&](const Victim& victim) {
        return victim.moved ? 0 : cluster.inventory().tasks.move_cost[index(victim.task)];
    };
    if (frugal) {  // insertion sort, because std::stable_sort allocates memory
        const auto cheaper = [&](const Victim& a, const Victim& b) { return cost(a) < cost(b); };
        for (auto next = victims.begin(); next != victims.end(); ++next)
            std::rotate(std::upper_bound(victims.begin(), next, *next, cheaper), next, next + 1);
    }
    auto rest = before;
    std::size_t count = 0;
    while (count < victims.size() && !rest.fits()) rest.leave(victims[count++].task);
    if (!rest.fits()) return false;
    victims.resize(count);
    // Leaves out victims that the others do not need. The last one is always needed.
    for (std::size_t left_out = 0; left_out + 1 < victims.size();) {
        auto without = before;
        for (std::size_t i = 0; i < victims.size(); ++i)
            if (i != left_out) without.leave(victims[i].task);
        if (without.fits())
            victims.erase(victims.begin() + static_cast<std::ptrdiff_t>(left_out));
        else
            ++left_out;
    }
    return true;
}

}  // namespace gpusched::consolidation
