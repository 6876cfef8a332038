// SPDX-License-Identifier: Apache-2.0
// Which tasks are down, and how many of each disruption budget may be.
#pragma once

#include <gpusched/core/errors.hpp>
#include <gpusched/model/spec.hpp>

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace gpusched::verify::detail {

class Downtime {
  public:
    explicit Downtime(const ClusterSpec& snapshot) : budgets_(snapshot.budgets), down_(budgets_.size()) {
        for (std::size_t b = 0; b < budgets_.size(); ++b) {
            for (const auto& task : budgets_[b].tasks) of_task_[task].push_back(b);
            for (const auto& group : budgets_[b].groups) of_group_[group].push_back(b);
        }
    }

    /// The task goes down; reports every budget that does not allow it.
    template <class Report>
    void begin(const TaskSpec& task, const Report& report) {
        for (const auto b : budgets_of(task)) {
            const auto& budget = budgets_[b];
            const std::int64_t allowed = budget.broken ? 0 : budget.allowed_down;
            if (++down_[b] > allowed)
                report("budgets: " + std::to_string(down_[b]) + " tasks of " + gpusched::quoted(budget.name) +
                       " would be down, " + std::to_string(allowed) + " may be");
        }
    }
    /// It runs again.
    void end(const TaskSpec& task) {
        for (const auto b : budgets_of(task)) --down_[b];
    }

  private:
    [[nodiscard]] std::set<std::size_t> budgets_of(const TaskSpec& task) const {
        std::set<std::size_t> found;
        const auto add = [&](const auto& of, const std::string& name) {
            if (const auto at = of.find(name); at != of.end())
                found.insert(at->second.begin(), at->second.end());
        };
        add(of_task_, task.name);
        for (const auto& term : task.anti_affinity) add(of_group_, term.group);
        for (const auto& term : task.affinity) add(of_group_, term.group);
        for (const auto& group : task.groups) add(of_group_, group);
        return found;
    }

    const std::vector<BudgetSpec>& budgets_;
    std::vector<std::int64_t> down_;
    std::unordered_map<std::string_view, std::vector<std::size_t>> of_task_, of_group_;
};

}  // namespace gpusched::verify::detail
