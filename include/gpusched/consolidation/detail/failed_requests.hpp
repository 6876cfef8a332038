// FailedRequests: a memory of requests that found no place, so that no harder one is tried.
#pragma once

#include <gpusched/model/cluster.hpp>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace GPUSCHED_NAMESPACE::consolidation::detail {

/// A request fails without a search where one failed that asked for no more of anything, was allowed at least the
/// same depth and may run on the same nodes. A heuristic: what failed may succeed after later moves, so the memory is
/// cleared at every round.
class FailedRequests {
  public:
    void clear() { classes_.clear(); }

    [[nodiscard]] bool dominates(const Cluster& cluster, TaskId task, int depth) const {
        const auto* entries = find(class_of(cluster, task));
        if (entries == nullptr) return false;
        const auto r = request(cluster, task, depth);
        return std::any_of(entries->begin(), entries->end(),
                           [&](const Request& e) { return e.no_harder(r); });
    }
    void add(const Cluster& cluster, TaskId task, int depth) {
        // What fails for its groups, GPU memory, locality or extras says nothing about others.
        const auto& inv = cluster.inventory();
        if (!inv.memberships(task).empty() || inv.tasks.gpu_memory_mib[index(task)] > 0 ||
            inv.tasks.extras[index(task)] != 0 ||
            !inv.task_affinities[inv.tasks.affinities[index(task)]].hardware_affinity.empty())
            return;
        const auto r = request(cluster, task, depth);
        auto& entries = find_or_add(class_of(cluster, task));
        std::erase_if(entries, [&](const Request& e) { return r.no_harder(e); });
        entries.push_back(r);
    }

  private:
    struct Request {
        std::int64_t gpu_milli, cpu_milli, memory_mib;
        int depth;
        [[nodiscard]] bool no_harder(const Request& other) const noexcept {
            return gpu_milli <= other.gpu_milli && cpu_milli <= other.cpu_milli &&
                   memory_mib <= other.memory_mib && depth >= other.depth;
        }
    };
    struct Class {
        std::uint32_t id;
        std::vector<Request> entries;
    };
    static Request request(const Cluster& cluster, TaskId task, int depth) {
        const auto& t = cluster.inventory().tasks;
        return {cluster.gpu_milli(task), t.cpu_milli[index(task)], t.memory_mib[index(task)], depth};
    }
    static std::uint32_t class_of(const Cluster& cluster, TaskId task) {
        return cluster.inventory().tasks.requirement[index(task)] * 2 + (cluster.may_borrow(task) ? 1u : 0u);
    }
    [[nodiscard]] const std::vector<Request>* find(std::uint32_t id) const {
        for (const auto& c : classes_)
            if (c.id == id) return &c.entries;
        return nullptr;
    }
    std::vector<Request>& find_or_add(std::uint32_t id) {
        for (auto& c : classes_)
            if (c.id == id) return c.entries;
        return classes_.emplace_back(Class{id, {}}).entries;
    }
    std::vector<Class> classes_;
};

}  // namespace GPUSCHED_NAMESPACE::consolidation::detail
