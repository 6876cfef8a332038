// SPDX-License-Identifier: Apache-2.0
// The parts of the workspace and of the chain search that do not depend on policies.
#include <gpusched/config.hpp>
#include <gpusched/consolidation/chain_search.hpp>

namespace gpusched::consolidation::detail {

GPUSCHED_EXPORT FailedRequests::FailedRequests(const Cluster& cluster)
    : requests_(cluster.task_slots()), by_class_(std::size_t{2} * cluster.inventory().requirements.size()) {
    const auto& t = cluster.inventory().tasks;
    for (const auto task : cluster.tasks())
        requests_[index(task)] = {t.cpu_milli[index(task)], t.memory_mib[index(task)],
                                  static_cast<std::int32_t>(cluster.gpu_milli(task)),
                                  2 * t.requirement[index(task)] + (cluster.may_borrow(task) ? 1u : 0u)};
}

GPUSCHED_EXPORT void FailedRequests::clear() {
    for (auto& entries : by_class_) entries.clear();
    by_constraints_.clear();
}

FailedRequests::Constraints FailedRequests::constraints_of(const Cluster& cluster, TaskId task) {
    const auto& t = cluster.inventory().tasks;
    const auto i = index(task);
    return {t.requirement[i], t.affinities[i],     t.profile[i],
            t.extras[i],      t.gpu_memory_mib[i], cluster.may_borrow(task)};
}

GPUSCHED_EXPORT auto FailedRequests::with_constraints_of(const Cluster& cluster, TaskId task) const
    -> const std::vector<Failure>& {
    static const std::vector<Failure> nothing;
    const auto same = by_constraints_.find(constraints_of(cluster, task));
    return same != by_constraints_.end() ? same->second : nothing;
}

GPUSCHED_EXPORT void FailedRequests::add(const Cluster& cluster, TaskId task, int depth, NodeId source) {
    const auto& inv = cluster.inventory();
    // A failure because of groups, GPU memory, locality or extras says nothing about other tasks. If the
    // search considers every node, the failure applies to tasks with the same constraints.
    const bool asks_for_more = !inv.selection_memberships(task).empty() || inv.tasks.extras[index(task)] != 0;
    if (!asks_for_more && (!inv.memberships(task).empty() || inv.tasks.gpu_memory_mib[index(task)] > 0 ||
                           !inv.task_affinities[inv.tasks.affinities[index(task)]].hardware_affinity.empty()))
        return;
    const auto& request = requests_[index(task)];
    const Failure failure{request.cpu_milli, request.memory_mib, request.gpu_milli, depth, source};
    auto& entries = asks_for_more ? by_constraints_[constraints_of(cluster, task)] : by_class_[request.of];
    std::erase_if(entries, [&](const Failure& e) { return failure.is_no_harder(e, e.depth); });
    entries.push_back(failure);
}

GPUSCHED_EXPORT void put_hardest_first(const Cluster& cluster, std::span<TaskId> tasks) {
    const auto& cpu = cluster.inventory().tasks.cpu_milli;
    std::sort(tasks.begin(), tasks.end(), [&](TaskId a, TaskId b) {
        return std::tuple(-cluster.gpu_milli(a), -cpu[index(a)], a) <
               std::tuple(-cluster.gpu_milli(b), -cpu[index(b)], b);
    });
}

GPUSCHED_EXPORT bool fits_at_home(const Cluster& cluster, TaskId task, NodeId home, GpuMask gpus) {
    const auto& inv = cluster.inventory();
    const auto& resources = inv.extras[inv.tasks.extras[index(task)]].resources;
    const auto share_of = [&](TaskId of, int g) {
        return (cluster.devices(home) & gpu_bit(g)) != 0 ? whole_gpu_milli
                                                         : inv.tasks.gpu_share_milli[index(of)];
    };
    std::array<int, 64> used{};
    for (const auto other : cluster.tasks_on(home)) {
        if (inv.tasks.standby[index(other)] && cluster.may_borrow(task)) continue;
        for_each_gpu(cluster.gpus_of(other) & gpus,
                     [&](int g) { used[static_cast<std::size_t>(g)] += share_of(other, g); });
    }
    bool free = true;
    for_each_gpu(gpus, [&](int g) {
        free = free && used[static_cast<std::size_t>(g)] + share_of(task, g) <= whole_gpu_milli;
    });
    return free && inv.tasks.cpu_milli[index(task)] <= cluster.cpu_free_milli(home, cluster.lent_to(task)) &&
           inv.tasks.memory_mib[index(task)] <= cluster.memory_free_mib(home) &&
           std::all_of(resources.begin(), resources.end(),
                       [&](const auto& r) { return r.amount <= cluster.resource_free(home, r.resource); });
}

GPUSCHED_EXPORT void add_noise(std::vector<NodeKey>& sorted, std::uint64_t seed) {
    if (sorted.empty()) return;
    const Rng rng(seed);
    const auto lowest = static_cast<std::uint64_t>(std::min<std::int64_t>(0, sorted.front().first));
    std::vector<std::tuple<std::uint64_t, std::uint64_t, NodeKey>> noisy;
    noisy.reserve(sorted.size());
    for (const auto& entry : sorted) {
        auto random = rng.split(index(entry.second));
        const auto key = std::min(static_cast<std::uint64_t>(entry.first) - lowest, std::uint64_t{1} << 58);
        const auto grown = key * (16 + random.below(9));
        noisy.emplace_back(grown, random(), entry);
    }
    std::sort(noisy.begin(), noisy.end());
    for (std::size_t i = 0; i < sorted.size(); ++i) sorted[i] = std::get<NodeKey>(noisy[i]);
}

GPUSCHED_EXPORT EmptyKind empty_kind(const Cluster& cluster, NodeId node, std::int64_t weight) {
    const auto& inv = cluster.inventory();
    const auto n = index(node);
    std::vector<std::int64_t> resources;
    for (std::uint32_t r = 0; r < inv.resource_names.size(); ++r)
        resources.push_back(cluster.resource_free(node, r));
    return {weight,
            inv.nodes.node_class[n],
            inv.nodes.hardware[n],
            inv.nodes.devices[n],
            cluster.idle_gpus(node),
            cluster.free_devices(node),
            inv.nodes.gpu_memory_mib[n],
            cluster.cpu_free_milli(node),
            cluster.memory_free_mib(node),
            std::move(resources)};
}

GPUSCHED_EXPORT bool any_of_kind_will_do(const Cluster& cluster, TaskId task) {
    const auto& inv = cluster.inventory();
    return inv.memberships(task).empty() &&
           inv.extras[inv.tasks.extras[index(task)]].node_set == Extras::no_node_set;
}

}  // namespace gpusched::consolidation::detail
