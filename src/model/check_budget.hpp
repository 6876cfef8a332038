// SPDX-License-Identifier: Apache-2.0
// Checks of one disruption budget as written.
#pragma once

#include "model/check_extras.hpp"

#include <gpusched/core/name_table.hpp>
#include <gpusched/core/nearest_names.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_set>

namespace gpusched::detail {

/// @param number its place in the input, for a budget without a name
/// @param tasks  the names that there are
inline void check_budget(const BudgetSpec& budget, std::size_t number, const NameTable& tasks,
                         Problems& problems) {
    const Owner owner("budget", budget.name);
    if (budget.name.empty()) problems.add(Owner("budget", number) + ": name is empty");
    if (budget.name.find('\0') != std::string::npos)
        problems.add(
            bad_value("name", "text with a NUL character", "text without", Owner("budget", number).text()));
    check_fields(problems, budget, owner);
    std::unordered_set<std::string_view> seen;
    for (const auto& task : budget.tasks)
        if (!seen.insert(task).second)
            problems.add(owner + ": names task " + gpusched::quoted(task) + " twice");
        else if (!tasks.find(task))
            problems.add(owner + ": unknown task " + gpusched::quoted(task) +
                         (problems.full() ? "" : did_you_mean(task, tasks)));
    seen.clear();
    for (const auto& group : budget.groups) {
        check_name(owner, "groups", group, problems);
        if (!seen.insert(group).second)
            problems.add(owner + ": names group " + gpusched::quoted(group) + " twice");
    }
}

}  // namespace gpusched::detail
