// SPDX-License-Identifier: Apache-2.0
// Keeps the disruption budgets of every task in step with the budgets and tasks.
#pragma once

#include "model/shared_values.hpp"

#include <gpusched/model/inventory.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace gpusched::detail {

/// Tasks with the same budgets share one list of them. The caller has checked the data. A change of a budget
/// costs O(tasks that it names), or O(all tasks) if it has groups, because groups have no index of their
/// tasks.
class BudgetEditor {
  public:
    /// Takes over the budgets of `inventory`.
    explicit BudgetEditor(Inventory& inventory) : out_(inventory), lists_(inventory.budget_lists) {
        if (out_.budget_lists.empty()) {
            (void)lists_.acquire({});
        } else {
            auto users = out_.tasks.budgets;
            for (std::size_t i = 0; i < users.size(); ++i)
                if (out_.tasks.names[i].empty()) users[i] = SharedValues<List>::nothing;
            users.push_back(0);  // a permanent reference to the empty list
            lists_.adopt(users);
        }
        for (std::uint32_t b = 0; b < out_.budgets.size(); ++b)
            for (const auto& group : out_.budgets[b].groups) of_group_[group].push_back(b);
    }

    /// Writes all budgets of a snapshot after its tasks.
    void build(const std::vector<BudgetSpec>& budgets) {
        if (budgets.empty()) return;
        std::vector<List> in(out_.tasks.names.size());
        for (const auto& budget : budgets) {
            const auto b = open(budget);
            for (const auto task : out_.budgets[b].tasks) in[index(task)].push_back(b);
        }
        for (std::size_t i = 0; i < in.size(); ++i) write_list(i, with_groups(i, std::move(in[i])));
    }

    void add(const BudgetSpec& budget) {
        const auto b = open(budget);
        each_member(b, [&](std::size_t task) { enter(task, b); });
    }

    void update(std::uint32_t b, const BudgetSpec& to) {
        const auto tasks = ids(to.tasks);
        if (tasks != out_.budgets[b].tasks || to.groups != out_.budgets[b].groups) {
            each_member(b, [&](std::size_t task) { leave(task, b); });
            each_group_of(b, [&](List& others) { std::erase(others, b); });
            write(b, to);
            each_member(b, [&](std::size_t task) { enter(task, b); });
        }
        out_.budgets[b].allowed_down = to.allowed_down;
        out_.budgets[b].broken = to.broken;
    }

    void remove(std::uint32_t b) {
        each_member(b, [&](std::size_t task) { leave(task, b); });
        each_group_of(b, [&](List& others) { std::erase(others, b); });
        out_.budgets[b] = {};
        out_.budget_names.erase(b);
        out_.budget_free.give(b);
    }

    /// Call after a task is written: updates its list from the budgets that name it and from its groups.
    void write_task(std::size_t task) {
        if (out_.budgets.empty()) return;
        make_column();
        auto named = out_.budget_lists[out_.tasks.budgets[task]];
        std::erase_if(named, [&](std::uint32_t b) { return !names(b, task); });
        write_list(task, with_groups(task, std::move(named)));
    }

    /// Removes the task from all budgets. True if budgets named it.
    bool remove_task(std::size_t task) {
        if (out_.tasks.budgets.empty()) return false;
        std::size_t named = 0;
        for (const auto b : out_.budget_lists[out_.tasks.budgets[task]])
            named += std::erase(out_.budgets[b].tasks, make_id<TaskId>(task));
        write_list(task, {});
        return named > 0;
    }

  private:
    using List = std::vector<std::uint32_t>;

    [[nodiscard]] std::vector<TaskId> ids(const std::vector<std::string>& names) const {
        std::vector<TaskId> tasks;
        for (const auto& name : names) tasks.push_back(make_id<TaskId>(*out_.tasks.names.find(name)));
        return tasks;
    }
    [[nodiscard]] bool names(std::uint32_t b, std::size_t task) const {
        const auto& named = out_.budgets[b].tasks;
        return std::find(named.begin(), named.end(), make_id<TaskId>(task)) != named.end();
    }

    // Adds the budget, but not to the lists of its members.
    std::uint32_t open(const BudgetSpec& budget) {
        const auto b = static_cast<std::uint32_t>(out_.budget_free.empty() ? out_.budgets.size()
                                                                           : out_.budget_free.take());
        if (b == out_.budgets.size()) {
            out_.budget_names.intern(budget.name);
            out_.budgets.emplace_back();
        } else {
            out_.budget_names.assign(b, budget.name);
        }
        make_column();
        write(b, budget);
        out_.budgets[b].allowed_down = budget.allowed_down;
        out_.budgets[b].broken = budget.broken;
        return b;
    }

    void write(std::uint32_t b, const BudgetSpec& budget) {
        out_.budgets[b].tasks = ids(budget.tasks);
        out_.budgets[b].groups = budget.groups;
        for (const auto& group : budget.groups) of_group_[group].push_back(b);
    }

    void make_column() { out_.tasks.budgets.resize(out_.tasks.names.size()); }

    template <class Visit>
    void each_group_of(std::uint32_t b, Visit&& visit) {
        for (const auto& group : out_.budgets[b].groups) visit(of_group_[group]);
    }

    // Calls `visit` for the groups of the task; a group may come twice.
    template <class Visit>
    void each_group(std::size_t task, Visit&& visit) const {
        const auto& asked = out_.task_affinities[out_.tasks.affinities[task]];
        for (const auto& term : asked.anti_affinity) visit(term.group);
        for (const auto& term : asked.affinity) visit(term.group);
        for (const auto& group : out_.group_terms[asked.group_terms].groups) visit(group);
    }

    [[nodiscard]] List with_groups(std::size_t task, List list) const {
        if (!of_group_.empty())
            each_group(task, [&](const std::string& group) {
                if (const auto found = of_group_.find(group); found != of_group_.end())
                    list.insert(list.end(), found->second.begin(), found->second.end());
            });
        std::sort(list.begin(), list.end());
        list.erase(std::unique(list.begin(), list.end()), list.end());
        return list;
    }

    template <class Visit>
    void each_member(std::uint32_t b, Visit&& visit) {
        const auto& budget = out_.budgets[b];
        for (const auto task : budget.tasks) visit(index(task));
        if (budget.groups.empty()) return;
        ++out_.changes.budgets;
        for (const auto id : out_.living_tasks()) {
            bool member = false;
            each_group(index(id), [&](const std::string& group) {
                member = member ||
                         std::find(budget.groups.begin(), budget.groups.end(), group) != budget.groups.end();
            });
            if (member) visit(index(id));
        }
    }

    void enter(std::size_t task, std::uint32_t b) {
        auto list = out_.budget_lists[out_.tasks.budgets[task]];
        if (const auto at = std::lower_bound(list.begin(), list.end(), b); at == list.end() || *at != b)
            list.insert(at, b);
        write_list(task, list);
    }
    void leave(std::size_t task, std::uint32_t b) {
        auto list = out_.budget_lists[out_.tasks.budgets[task]];
        std::erase(list, b);
        write_list(task, list);
    }

    void write_list(std::size_t task, const List& list) {
        auto& held = out_.tasks.budgets[task];
        const auto before = held;
        held = list.empty() ? 0 : lists_.acquire(list).first;
        if (before != 0) lists_.release(before);
    }

    Inventory& out_;
    SharedValues<List> lists_;
    std::map<std::string, List, std::less<>> of_group_;
};

}  // namespace gpusched::detail
