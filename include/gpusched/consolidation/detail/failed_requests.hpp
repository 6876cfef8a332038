// FailedRequests: a memory of requests that found no place, so that no harder one is tried.
#pragma once

#include <gpusched/model/cluster.hpp>

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace GPUSCHED_NAMESPACE::consolidation::detail {

/// A request fails without a search where one failed that asked for no more of anything, was allowed at least the
/// same depth and may run on the same nodes. A heuristic: what failed may succeed after later moves, so the memory is
/// cleared at every round. What a task with extras, or one that avoids, wants near or spreads, failed
/// of is known of those with the same constraints.
class FailedRequests {
  public:
    explicit FailedRequests(const Inventory& inventory)
        : classes_(std::size_t{2} * inventory.requirements.size()) {}

    void clear();

    [[nodiscard]] bool dominates(const Cluster& cluster, TaskId task, int depth) const {
        return knows(classes_[class_of(cluster, task)], cluster, task, depth) ||
               (!alike_.empty() && dominates_alike(cluster, task, depth));
    }
    void add(const Cluster& cluster, TaskId task, int depth);

  private:
    struct Request {
        std::int64_t gpu_milli, cpu_milli, memory_mib;
        int depth;
        [[nodiscard]] bool no_harder(const Request& other) const noexcept {
            return gpu_milli <= other.gpu_milli && cpu_milli <= other.cpu_milli &&
                   memory_mib <= other.memory_mib && depth >= other.depth;
        }
    };
    /// All that decides where a task may run beside its request: tasks of one job, mostly.
    struct Constraints {
        std::uint32_t requirement, affinities, profile, extras;
        std::int64_t gpu_memory_mib;
        bool borrows;
        bool operator==(const Constraints&) const = default;
    };
    struct Hash {
        std::size_t operator()(const Constraints& c) const noexcept {
            return (std::size_t{c.profile} << 32 | c.extras) * 0x9E3779B97F4A7C15u + c.requirement;
        }
    };
    static Request request(const Cluster& cluster, TaskId task, int depth) {
        const auto& t = cluster.inventory().tasks;
        return {cluster.gpu_milli(task), t.cpu_milli[index(task)], t.memory_mib[index(task)], depth};
    }
    static std::size_t class_of(const Cluster& cluster, TaskId task) {
        return std::size_t{2} * cluster.inventory().tasks.requirement[index(task)] +
               (cluster.may_borrow(task) ? 1u : 0u);
    }
    static bool knows(const std::vector<Request>& entries, const Cluster& cluster, TaskId task, int depth) {
        for (const auto& entry : entries)
            if (entry.no_harder(request(cluster, task, depth))) return true;
        return false;
    }
    [[nodiscard]] bool dominates_alike(const Cluster& cluster, TaskId task, int depth) const;
    static Constraints constraints_of(const Cluster& cluster, TaskId task);

    std::vector<std::vector<Request>> classes_;  // by requirement, and whether the task may borrow
    std::unordered_map<Constraints, std::vector<Request>, Hash> alike_;
};

}  // namespace GPUSCHED_NAMESPACE::consolidation::detail

#ifdef GPUSCHED_HEADER_ONLY
#include <gpusched/consolidation/impl/failed_requests.ipp>
#endif
