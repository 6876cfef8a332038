// SPDX-License-Identifier: Apache-2.0
#include "model/check_budget.hpp"
#include "model/check_specs.hpp"
#include "model/inventory_editor.hpp"

#include <gpusched/config.hpp>
#include <gpusched/core/nearest_names.hpp>
#include <gpusched/model/cluster.hpp>
#include <gpusched/model/event_log.hpp>

#include <cstdint>
#include <string_view>

namespace gpusched {

GPUSCHED_EXPORT void Cluster::add_budget(const BudgetSpec& budget) {
    require_no_what_if();
    Problems problems;
    detail::check_budget(budget, inventory_->budgets.size(), inventory_->tasks.names, problems);
    if (inventory_->budget_names.find(budget.name))
        problems.add(detail::Owner("budget", budget.name) + ": duplicate budget name");
    problems.throw_if_any();
    editor().add_budget(budget);
    if (events_) events_->publish({.kind = EventKind::budgets});
}

GPUSCHED_EXPORT void Cluster::update_budget(const BudgetSpec& to) {
    require_no_what_if();
    const auto found = find_budget(to.name);
    Problems problems;
    detail::check_budget(to, found, inventory_->tasks.names, problems);
    problems.throw_if_any();
    editor().update_budget(found, to);
    if (events_) events_->publish({.kind = EventKind::budgets});
}

GPUSCHED_EXPORT void Cluster::remove_budget(std::string_view name) {
    require_no_what_if();
    const auto found = find_budget(name);
    editor().remove_budget(found);
    if (events_) events_->publish({.kind = EventKind::budgets});
}

GPUSCHED_EXPORT std::uint32_t Cluster::find_budget(std::string_view name) const {
    if (const auto found = inventory_->budget_names.find(name)) return *found;
    throw InvalidInput("unknown budget " + gpusched::quoted(name) +
                       did_you_mean(name, inventory_->budget_names));
}

}  // namespace gpusched
