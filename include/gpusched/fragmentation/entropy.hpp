// SPDX-License-Identifier: Apache-2.0
// GPU entropy: measures how far a job is spread over switches.
#pragma once

#include <gpusched/fragmentation/detail/node_groups.hpp>
#include <gpusched/model/cluster.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace gpusched::fragmentation {

/// Returns H = -sum p_i ln p_i of the shares p_i = part_i / sum of parts (natural logarithm).
///
/// The result is 0 if at most one part is above 0, and ln n for n equal parts. Parts must not be negative.
/// They are added in the given order, so equal inputs give identical bits.
[[nodiscard]] double entropy(std::span<const std::int64_t> parts) noexcept;

/// Returns the GPU entropy of a job (ASI paper, section 4.1): the `entropy` of its GPUs per domain of
/// `level`.
///
/// Pending tasks do not count. Fractions of GPUs count as fractions. A node of unknown position is its own
/// domain.
/// @param level the level of the switches; none = the deepest known level
/// @throws InvalidInput if `level` is out of range
///
/// O(tasks).
[[nodiscard]] double job_entropy(const Cluster& cluster, JobId job,
                                 std::optional<Level> level = std::nullopt);

/// Returns `job_entropy` of all jobs, by JobId. O(tasks log tasks).
[[nodiscard]] std::vector<double> job_entropies(const Cluster& cluster,
                                                std::optional<Level> level = std::nullopt);

/// Follows a cluster (model/follower.hpp) and returns the GPU entropy of single jobs, as `job_entropies`
/// computes it. Stores GPUs per job and domain, in thousandths.
class JobEntropies {
  public:
    /// @param level the level of the switches; none = the deepest known level
    explicit JobEntropies(std::optional<Level> level = std::nullopt) : level_(level) {}

    /// Reads all tasks. O(tasks).
    /// @throws InvalidInput if the cluster does not have the level
    void rebuild(const Cluster& cluster) {
        at_ = detail::checked_level(cluster.inventory(), level_);  // may throw, so it comes before all writes
        deepest_ = cluster.inventory().deepest_level();
        tasks_.assign(cluster.task_slots(), {});
        jobs_.clear();
        for (const auto task : cluster.tasks()) task_changed(cluster, task);
    }
    /// Updates the task's part. O(domains of the job).
    void task_changed(const Cluster& cluster, TaskId task) {
        if (tasks_.size() < cluster.task_slots()) tasks_.resize(cluster.task_slots());
        auto& known = tasks_[index(task)];
        const auto now = part(cluster, task);
        if (now == known) return;
        add(known, -1);
        add(now, +1);
        known = now;
    }
    /// Updates the tasks of a node that may lie in another domain. O(its tasks); O(tasks) if the deepest
    /// level changed.
    void node_changed(const Cluster& cluster, NodeId node) {
        if (deepest_ != cluster.inventory().deepest_level()) return rebuild(cluster);
        for (const auto task : cluster.tasks_on(node)) task_changed(cluster, task);
    }

    /// Returns the job's entropy; 0 if it runs in one domain or does not run. O(its domains).
    [[nodiscard]] double entropy_of(JobId job) const {
        std::vector<std::int64_t> parts;
        if (index(job) < jobs_.size())
            for (const auto& domain : jobs_[index(job)]) parts.push_back(domain.milli);
        return entropy(parts);
    }

  private:
    struct Part {  // a task's contribution
        JobId job = none<JobId>;
        DomainId domain = none<DomainId>;
        std::int64_t milli = 0;
        bool operator==(const Part&) const = default;
    };
    struct DomainSum {
        DomainId domain;
        std::int64_t milli, tasks;
    };

    [[nodiscard]] Part part(const Cluster& cluster, TaskId task) const {
        const auto& inventory = cluster.inventory();
        if (!cluster.contains(task) || !cluster.is_placed(task)) return {};
        const auto job = inventory.tasks.job[index(task)];
        if (job == none<JobId>) return {};
        return {job, inventory.domain(at_, cluster.node_of(task)), cluster.gpu_milli(task)};
    }

    void add(const Part& part, int sign) {
        if (part.job == none<JobId>) return;
        if (jobs_.size() <= index(part.job)) jobs_.resize(index(part.job) + 1);
        auto& sums = jobs_[index(part.job)];
        auto at = std::lower_bound(sums.begin(), sums.end(), part.domain,
                                   [](const DomainSum& s, DomainId domain) { return s.domain < domain; });
        if (at == sums.end() || at->domain != part.domain) at = sums.insert(at, {part.domain, 0, 0});
        at->milli += sign * part.milli;
        at->tasks += sign;
        if (at->tasks == 0) sums.erase(at);
    }

    std::optional<Level> level_;
    Level at_ = node_level, deepest_ = node_level;
    std::vector<Part> tasks_;                   // by TaskId, as of the last update
    std::vector<std::vector<DomainSum>> jobs_;  // by JobId, domains ascending
};

}  // namespace gpusched::fragmentation
