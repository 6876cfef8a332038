// SPDX-License-Identifier: Apache-2.0
// FailedRequests: a memory of requests that found no place, so that no harder one is tried.
#pragma once

#include <gpusched/model/cluster.hpp>

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace gpusched::consolidation::detail {

/// A request fails without a search where one failed that asked for no more of anything, was allowed at least the
/// same depth and may run on the same nodes. A heuristic: what failed may succeed after later moves, so the memory is
/// cleared at every round. A failed search leaves out the node that is being vacated, its source, which may be a
/// destination later: each failure keeps its source. What a task with extras, or one that avoids, wants near or spreads, failed
/// of is known of those with the same constraints.
class FailedRequests {
  public:
    explicit FailedRequests(const Cluster& cluster);

    void clear();

    /// @param cluster of the tasks and requirements that the memory was made for, whoever runs where
    [[nodiscard]] bool dominates(const Cluster& cluster, TaskId task, int depth) const {
        const auto& request = requests_[index(task)];
        return knows(classes_[request.of], request, depth) ||
               (!alike_.empty() && knows(alike(cluster, task), request, depth));
    }
    /// @param source the node that was being vacated
    void add(const Cluster& cluster, TaskId task, int depth, NodeId source);
    /// The one node that the failures which dominate the request have left out: their source. `none` where they have several
    /// sources, for then each search has looked at the sources of the others.
    [[nodiscard]] NodeId unseen(const Cluster& cluster, TaskId task, int depth) const {
        const auto& request = requests_[index(task)];
        auto source = none<NodeId>;
        const auto is_only_one = [&](const std::vector<Failure>& failures) {
            for (const auto& failure : failures)
                if (failure.is_no_harder(request, depth)) {
                    if (source != none<NodeId> && source != failure.source) return false;
                    source = failure.source;
                }
            return true;
        };
        const bool is_only =
            is_only_one(classes_[request.of]) && (alike_.empty() || is_only_one(alike(cluster, task)));
        return is_only ? source : none<NodeId>;
    }

  private:
    /// What a task asks for, side by side: searches read it of tasks all over the cluster.
    struct Request {
        std::int64_t cpu_milli, memory_mib;
        std::int32_t gpu_milli;
        std::uint32_t of;  // index into `classes_`
    };
    struct Failure {
        std::int64_t cpu_milli, memory_mib;
        std::int32_t gpu_milli;
        std::int32_t depth;
        NodeId source;
        [[nodiscard]] bool is_no_harder(const auto& other, int other_depth) const noexcept {
            return gpu_milli <= other.gpu_milli && cpu_milli <= other.cpu_milli &&
                   memory_mib <= other.memory_mib && depth >= other_depth;
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
    [[nodiscard]] static bool knows(const std::vector<Failure>& failures, const Request& request,
                                    int depth) noexcept {
        for (const auto& failure : failures)
            if (failure.is_no_harder(request, depth)) return true;
        return false;
    }
    /// What is known of tasks with the same constraints.
    [[nodiscard]] const std::vector<Failure>& alike(const Cluster& cluster, TaskId task) const;
    static Constraints constraints_of(const Cluster& cluster, TaskId task);

    std::vector<Request> requests_;              // by task
    std::vector<std::vector<Failure>> classes_;  // by requirement, and whether the task may borrow
    std::unordered_map<Constraints, std::vector<Failure>, Hash> alike_;
};

}  // namespace gpusched::consolidation::detail
