// SPDX-License-Identifier: Apache-2.0
// add_row: one more row in a model that is built already, such as a constraint of the caller's own.
#pragma once

#include <gpusched/core/checks.hpp>
#include <gpusched/milp/model.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpusched::milp {

/// Adds lower <= sum of the entries <= upper as the last row. For constraints that a builder does not know, written on the columns that
/// `Model::index` names: `add_row(model, "rack", "r1", -infinity, {{x(k, j), 1}, ...}, 3)`.
///
/// @param group of the row; a new one where the model has none of that name
/// @param entries columns of the model, each at most once, with numbers that are finite and not 0
/// @return the index of the row
/// @throws InvalidInput for entries that are wrong; the model is then unchanged
/// O(columns + entries of the model)
inline int add_row(Model& model, std::string_view group, std::string name, double lower,
                   std::span<const Entry> entries, double upper) {
    auto changed = model;
    const int row = changed.rows();
    std::vector<Entry> sorted(entries.begin(), entries.end());
    std::sort(sorted.begin(), sorted.end(),
              [](const Entry& a, const Entry& b) { return a.column < b.column; });
    for (const auto& entry : sorted)
        if (entry.column < 0 || entry.column >= changed.columns())
            throw InvalidInput(bad_value("column", std::to_string(entry.column),
                                         "an index below " + std::to_string(changed.columns()),
                                         "row " + gpusched::quoted(name)));
    changed.row_index.clear();
    changed.value.clear();
    auto next = sorted.begin();
    for (std::size_t column = 0; column + 1 < model.column_start.size(); ++column) {
        const auto first = model.column_start[column], last = model.column_start[column + 1];
        changed.row_index.insert(changed.row_index.end(), model.row_index.begin() + first,
                                 model.row_index.begin() + last);
        changed.value.insert(changed.value.end(), model.value.begin() + first, model.value.begin() + last);
        for (; next != sorted.end() && static_cast<std::size_t>(next->column) == column; ++next) {
            changed.row_index.push_back(row);
            changed.value.push_back(next->value);
        }
        changed.column_start[column + 1] = static_cast<int>(changed.row_index.size());
    }
    auto at = std::find(changed.group_names.begin(), changed.group_names.end(), group);
    changed.row_group.push_back(static_cast<int>(at - changed.group_names.begin()));
    if (at == changed.group_names.end()) changed.group_names.emplace_back(group);
    changed.row_names.push_back(std::move(name));
    changed.row_lower.push_back(lower);
    changed.row_upper.push_back(upper);
    validate(changed);
    model = std::move(changed);
    return row;
}

}  // namespace gpusched::milp
