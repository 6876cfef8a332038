// SPDX-License-Identifier: Apache-2.0
// Validation of linear programs.
#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/core/lp.hpp>

#include <string>

namespace gpusched {

GPUSCHED_EXPORT void validate(const LpProblem& problem) {
    const auto rows = problem.row_lower.size(), columns = problem.objective.size();
    require_size("row_upper", problem.row_upper.size(), rows);
    require_size("column_lower", problem.column_lower.size(), columns);
    require_size("column_upper", problem.column_upper.size(), columns);
    require_size("column_start", problem.column_start.size(), columns + 1);
    require_size("value", problem.value.size(), problem.row_index.size());
    require_size("row_index", problem.row_index.size(),
                 static_cast<std::size_t>(problem.column_start.back()));
    for (const auto row : problem.row_index)
        if (row < 0 || static_cast<std::size_t>(row) >= rows)
            throw InvalidInput(
                bad_value("row_index", std::to_string(row), "an index below " + std::to_string(rows)));
}

}  // namespace gpusched
