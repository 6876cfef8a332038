// SPDX-License-Identifier: Apache-2.0
// Checks of nodes, tasks, jobs and budgets as data: ranges, texts, and fields that must fit together.
#pragma once

#include <gpusched/core/errors.hpp>
#include <gpusched/core/fields.hpp>
#include <gpusched/core/name_table.hpp>
#include <gpusched/model/inventory.hpp>
#include <gpusched/model/spec.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpusched::detail {

/// The object that has a value, for messages: a node, task or job, or a named part of it. Its text is made
/// only for a problem, because millions of values are checked. The names must outlive it.
class Owner {
  public:
    explicit Owner(std::string_view kind) : kind_(kind) {}
    Owner(std::string_view kind, std::string_view name) : kind_(kind), name_(name) {}
    /// An object without a name, by its position in the input.
    Owner(std::string_view kind, std::size_t number) : kind_(kind), number_(number) {}

    /// A part of this owner, such as its devices of one class.
    [[nodiscard]] Owner part(std::string_view kind, std::string_view name) const {
        auto part = *this;
        part.part_.emplace(kind, name);
        return part;
    }

    [[nodiscard]] std::string text() const;
    friend std::string operator+(const Owner& owner, std::string_view text) {
        return owner.text().append(text);
    }

  private:
    std::string_view kind_;
    std::optional<std::string_view> name_;
    std::optional<std::size_t> number_;
    std::optional<std::pair<std::string_view, std::string_view>> part_;
};

inline constexpr int deepest_level = 15;

/// The nearest value in the range: tables hold no value that could overflow, even while problems are
/// collected.
constexpr std::int64_t legal(std::int64_t value, std::int64_t low = 0, std::int64_t high = largest_quantity) {
    return std::clamp(value, low, high);
}

/// Calls `visit(field, level)` for every level that a task names. For a task as data, `task` and `terms` are
/// the same.
template <class Task, class Terms, class Visit>
void for_each_level(const Task& task, const Terms& terms, Visit&& visit) {
    for (const auto& term : task.anti_affinity) visit("anti_affinity", term.level);
    for (const auto& term : task.affinity) visit("affinity", term.level);
    if (task.network_affinity) visit("network_affinity", task.network_affinity->level);
    for (const auto& term : terms.avoid) visit("avoid", term.level);
    for (const auto& term : terms.near) visit("near", term.level);
    for (const auto& term : terms.spread) visit("spread", term.level);
}

/// Reports the problems of single objects. An object without problems can be written into the tables.
class SpecChecks {
  public:
    explicit SpecChecks(Problems& problems) : problems_(problems) {}

    /// @param number its position in the input, for a node without a name
    void node(const NodeSpec& node, std::size_t number) const;
    /// The length and the names of the node's path in the network. Whether it fits the paths of other nodes
    /// is checked elsewhere.
    void network(const NodeSpec& node) const;
    /// The devices of a node besides its `gpus` whole GPUs.
    /// @return the number of GPUs and other devices, at most 64 unless there is a problem
    int devices(const Owner& owner, const std::vector<DeviceSpec>& devices, int gpus) const;
    void job(const JobSpec& job, std::size_t number) const;
    /// All fields except its placement and its levels.
    void task(const TaskSpec& task, std::size_t number) const;
    /// The label keys that are levels.
    void label_levels(const std::vector<std::string>& keys) const;
    /// The levels that a task names.
    /// @param labels number of levels that are label keys
    void levels(const TaskSpec& task, std::size_t labels) const;
    /// A task that runs on no node.
    void pending(const TaskSpec& task) const;
    /// @param tasks names of all tasks
    void budget(const BudgetSpec& budget, std::size_t number, const NameTable& tasks) const;

  private:
    void name_of(const Owner& by_number, const std::string& name) const;
    void no_nul(const Owner& owner, const char* field, const std::string& text) const;
    void listed_name(const Owner& owner, const char* field, const std::string& name) const;
    void group(const Owner& owner, const char* field, const std::string& group) const;
    void subgroups(const JobSpec& job) const;
    void resources(const Owner& owner, const Resources& resources) const;
    void device_request(const Owner& owner, const TaskSpec& task) const;
    void core_list(const Owner& owner, std::vector<int> cores) const;
    void match(const Owner& owner, const NodeMatch& match) const;
    void node_affinity(const Owner& owner, const std::vector<NodeTerm>& affinity) const;
    void toleration(const Owner& owner, const Toleration& toleration) const;
    void hardware(const NodeSpec& node, const Owner& owner, int count) const;

    Problems& problems_;
};

/// Checks that the task's job, which is written, lists the task's subgroup.
void check_subgroup(const Inventory& inventory, const TaskSpec& task, Problems& problems);

/// Checks that an update of a job keeps all subgroups that have tasks.
void check_subgroups_stay(const Inventory& inventory, JobId job, const JobSpec& to, Problems& problems);

/// Checks that the cores of `cpu_local` tasks exist, and that no two tasks use all of a core. Other tasks may
/// list the cores of an earlier node. Cores that a Standby task lends may be shared.
void check_cores_in_use(const ClusterSpec& spec, const Inventory& inventory, Problems& problems);

}  // namespace gpusched::detail
