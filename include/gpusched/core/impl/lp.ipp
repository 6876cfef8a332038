#pragma once

#include <gpusched/core/checks.hpp>
#include <gpusched/core/lp.hpp>

#ifdef GPUSCHED_HAS_CLP
#include <coin/ClpSimplex.hpp>
#endif

#include <algorithm>
#include <string>

namespace gpusched {

GPUSCHED_INLINE bool lp_available() noexcept {
#ifdef GPUSCHED_HAS_CLP
    return true;
#else
    return false;
#endif
}

GPUSCHED_INLINE void require_lp() {
    if (!lp_available())
        throw BackendError("no LP solver was compiled in; install Clp (Debian, Ubuntu: apt-get install "
                           "coinor-libclp-dev) and configure gpusched with -DGPUSCHED_WITH_CLP=ON; without "
                           "CMake, define GPUSCHED_HAS_CLP and link Clp and CoinUtils");
}

GPUSCHED_INLINE LpSolution solve_lp(const LpProblem& problem, const LpBasis& start,
                                    std::optional<double> time_limit) {
    const auto rows = problem.row_lower.size(), columns = problem.objective.size();
    const auto size = [](const char* field, std::size_t is, std::size_t expected) {
        if (is != expected)
            throw InvalidInput(
                bad_value("entries of " + std::string(field), std::to_string(is), std::to_string(expected)));
    };
    size("row_upper", problem.row_upper.size(), rows);
    size("column_lower", problem.column_lower.size(), columns);
    size("column_upper", problem.column_upper.size(), columns);
    size("column_start", problem.column_start.size(), columns + 1);
    size("value", problem.value.size(), problem.row_index.size());
    size("row_index", problem.row_index.size(), static_cast<std::size_t>(problem.column_start.back()));
    for (const auto row : problem.row_index)
        if (row < 0 || static_cast<std::size_t>(row) >= rows)
            throw InvalidInput(
                bad_value("row_index", std::to_string(row), "an index below " + std::to_string(rows)));
#ifdef GPUSCHED_HAS_CLP
    ClpSimplex clp;
    clp.setLogLevel(0);
    std::vector<CoinBigIndex> column_start(problem.column_start.begin(), problem.column_start.end());
    clp.loadProblem(problem.columns(), problem.rows(), column_start.data(), problem.row_index.data(),
                    problem.value.data(), problem.column_lower.data(), problem.column_upper.data(),
                    problem.objective.data(), problem.row_lower.data(), problem.row_upper.data());
    if (time_limit) clp.setMaximumSeconds(std::max(0.0, *time_limit));
    static_assert(ClpSimplex::atLowerBound == lp_at_lower_bound);
    const bool warm = start.size() >= rows && start.size() <= rows + columns;
    if (warm) {
        const auto known = start.size() - rows;
        for (std::size_t j = 0; j < columns; ++j)
            clp.setColumnStatus(static_cast<int>(j), j < known ? static_cast<ClpSimplex::Status>(start[j])
                                                               : ClpSimplex::atLowerBound);
        for (std::size_t i = 0; i < rows; ++i)
            clp.setRowStatus(static_cast<int>(i), static_cast<ClpSimplex::Status>(start[known + i]));
        clp.primal(1);
    } else {
        clp.dual();
    }
    LpSolution solution;
    switch (clp.status()) {
    case 0:
        solution.status = LpStatus::optimal;
        break;
    case 1:
        solution.status = LpStatus::infeasible;
        break;
    case 2:
        solution.status = LpStatus::unbounded;
        break;
    case 3:
        solution.status = LpStatus::time_limit;
        break;
    default:
        solution.status = LpStatus::failed;
    }
    solution.objective = clp.objectiveValue();
    solution.x.assign(clp.primalColumnSolution(), clp.primalColumnSolution() + columns);
    solution.row_dual.assign(clp.dualRowSolution(), clp.dualRowSolution() + rows);
    for (std::size_t j = 0; j < columns; ++j)
        solution.basis.push_back(static_cast<std::uint8_t>(clp.getColumnStatus(static_cast<int>(j))));
    for (std::size_t i = 0; i < rows; ++i)
        solution.basis.push_back(static_cast<std::uint8_t>(clp.getRowStatus(static_cast<int>(i))));
    return solution;
#else
    (void)start;
    (void)time_limit;
    require_lp();
    return {};
#endif
}

}  // namespace gpusched
