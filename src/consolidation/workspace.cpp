// SPDX-License-Identifier: Apache-2.0
// The memory of failed requests.

#include <gpusched/config.hpp>
#include <gpusched/consolidation/workspace.hpp>

#include <algorithm>

namespace gpusched::consolidation::detail {

GPUSCHED_EXPORT FailedRequests::FailedRequests(const Cluster& cluster)
    : requests_(cluster.task_slots()), classes_(std::size_t{2} * cluster.inventory().requirements.size()) {
    const auto& t = cluster.inventory().tasks;
    for (const auto task : cluster.tasks())
        requests_[index(task)] = {t.cpu_milli[index(task)], t.memory_mib[index(task)],
                                  static_cast<std::int32_t>(cluster.gpu_milli(task)),
                                  2 * t.requirement[index(task)] + (cluster.may_borrow(task) ? 1u : 0u)};
}

GPUSCHED_EXPORT void FailedRequests::clear() {
    for (auto& entries : classes_) entries.clear();
    alike_.clear();
}

FailedRequests::Constraints FailedRequests::constraints_of(const Cluster& cluster, TaskId task) {
    const auto& t = cluster.inventory().tasks;
    const auto i = index(task);
    return {t.requirement[i], t.affinities[i],     t.profile[i],
            t.extras[i],      t.gpu_memory_mib[i], cluster.may_borrow(task)};
}

GPUSCHED_EXPORT auto FailedRequests::alike(const Cluster& cluster, TaskId task) const
    -> const std::vector<Failure>& {
    static const std::vector<Failure> nothing;
    const auto same = alike_.find(constraints_of(cluster, task));
    return same != alike_.end() ? same->second : nothing;
}

GPUSCHED_EXPORT void FailedRequests::add(const Cluster& cluster, TaskId task, int depth, NodeId source) {
    const auto& inv = cluster.inventory();
    // What fails for its groups, GPU memory, locality or extras says nothing about others; where it takes a look at every node, it
    // is remembered for those that ask for the same.
    const bool asks_for_more = !inv.selection_memberships(task).empty() || inv.tasks.extras[index(task)] != 0;
    if (!asks_for_more && (!inv.memberships(task).empty() || inv.tasks.gpu_memory_mib[index(task)] > 0 ||
                           !inv.task_affinities[inv.tasks.affinities[index(task)]].hardware_affinity.empty()))
        return;
    const auto& request = requests_[index(task)];
    const Failure failure{request.cpu_milli, request.memory_mib, request.gpu_milli, depth, source};
    auto& entries = asks_for_more ? alike_[constraints_of(cluster, task)] : classes_[request.of];
    std::erase_if(entries, [&](const Failure& e) { return failure.is_no_harder(e, e.depth); });
    entries.push_back(failure);
}

}  // namespace gpusched::consolidation::detail
