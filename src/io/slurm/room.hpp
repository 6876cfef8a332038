// SPDX-License-Identifier: Apache-2.0
// CPUs, memory and counted resources of nodes; nodes whose jobs hold more than they have are clipped.
#pragma once

#include "io/report_builder.hpp"
#include "io/slurm/values.hpp"

#include <gpusched/model/spec.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace gpusched::io::detail::slurm {

/// What a node is clipped to, and its tasks together: room for both in the model's amounts.
inline constexpr std::int64_t most_of_a_node = most_of_anything / 2;

class Room {
  public:
    Room(std::vector<NodeSpec>& nodes, ReportBuilder& report)
        : nodes_(nodes), report_(report), held_(nodes.size()) {}

    /// Counts what a task on a node holds; clips what would exceed the model's amounts.
    void hold(std::size_t n, TaskSpec& task) {
        auto& held = held_[n];
        const auto take = [&](std::int64_t& sum, std::int64_t& amount) {
            if (amount > most_of_a_node - sum) {
                amount = most_of_a_node - sum;
                report_.approximated("Job", "allocations beyond 5 * 10^11", Errs::neither,
                                     "clipped, with all tasks of their node together", task.name);
            }
            sum += amount;
        };
        take(held.cpu_milli, task.cpu_milli);
        take(held.memory_mib, task.memory_mib);
        for (auto& [name, amount] : task.resources) take(held.resources[name], amount);
    }
    [[nodiscard]] const TaskSpec& held(std::size_t n) const { return held_[n]; }

    /// Raises every node to what its tasks hold, where that is more than it has; it receives no task then.
    void fit() {
        for (std::size_t n = 0; n < nodes_.size(); ++n) {
            auto& node = nodes_[n];
            std::string beyond;
            const auto fit = [&](const std::string& name, std::int64_t& has, std::int64_t held) {
                if (held <= has) return;
                beyond += (beyond.empty() ? "" : ", ") + name + " " + std::to_string(held) + " of " +
                          std::to_string(has);
                has = held;
            };
            fit("CPU (thousandths)", node.cpu_milli, held_[n].cpu_milli);
            fit("memory (MiB)", node.memory_mib, held_[n].memory_mib);
            for (const auto& [name, held] : held_[n].resources) {
                auto has = node.resources.contains(name) ? node.resources[name] : 0;
                fit(name, has, held);
                if (has > 0) node.resources[name] = has;
            }
            if (beyond.empty()) continue;
            node.schedulable = false;
            report_.approximated(
                "Node", "over-committed", Errs::too_strict,
                "its jobs hold more than it has: it has what they hold, and receives no task",
                node.name + ": " + beyond);
        }
    }

  private:
    std::vector<NodeSpec>& nodes_;
    ReportBuilder& report_;
    std::vector<TaskSpec> held_;  // sums, by node
};

}  // namespace gpusched::io::detail::slurm
