// SPDX-License-Identifier: Apache-2.0
// The adapter of Clp, a solver of linear programs.
#include <gpusched/config.hpp>
#include <gpusched/core/errors.hpp>
#include <gpusched/milp/solver.hpp>

#ifdef GPUSCHED_HAS_CLP
#include <coin/ClpSimplex.hpp>
#endif

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

namespace gpusched::milp {

#ifdef GPUSCHED_HAS_CLP
namespace detail {

static constexpr std::array<std::pair<LpPosition, ClpSimplex::Status>, 5> positions{{
    {LpPosition::basic, ClpSimplex::basic},
    {LpPosition::at_lower_bound, ClpSimplex::atLowerBound},
    {LpPosition::at_upper_bound, ClpSimplex::atUpperBound},
    {LpPosition::free, ClpSimplex::isFree},
    {LpPosition::fixed, ClpSimplex::isFixed},
}};
static ClpSimplex::Status to_clp(LpPosition position) {
    for (const auto& [ours, clps] : positions)
        if (ours == position) return clps;
    throw InternalError("unknown position in a basis");
}
static LpPosition from_clp(ClpSimplex::Status status) {
    for (const auto& [ours, clps] : positions)
        if (clps == status) return ours;
    return LpPosition::free;  // superbasic
}

class Clp final : public LpSolver {
  private:
    [[nodiscard]] LpSolution solve_valid(const LpProblem& problem, const LpBasis& start,
                                         std::optional<double> time_limit) const override {
        const auto rows = problem.row_lower.size(), columns = problem.objective.size();
        ClpSimplex clp;
        clp.setLogLevel(0);
        std::vector<CoinBigIndex> column_start(problem.column_start.begin(), problem.column_start.end());
        clp.loadProblem(problem.columns(), problem.rows(), column_start.data(), problem.row_index.data(),
                        problem.value.data(), problem.column_lower.data(), problem.column_upper.data(),
                        problem.objective.data(), problem.row_lower.data(), problem.row_upper.data());
        if (time_limit) clp.setMaximumSeconds(std::max(0.0, *time_limit));
        const bool warm = start.size() >= rows && start.size() <= rows + columns;
        if (warm) {
            const auto known = start.size() - rows;
            for (std::size_t j = 0; j < columns; ++j)
                clp.setColumnStatus(static_cast<int>(j),
                                    j < known ? to_clp(start[j]) : ClpSimplex::atLowerBound);
            for (std::size_t i = 0; i < rows; ++i)
                clp.setRowStatus(static_cast<int>(i), to_clp(start[known + i]));
            clp.primal(1);
        } else {
            clp.dual();
        }
        LpSolution solution;
        constexpr std::array known{LpStatus::optimal, LpStatus::infeasible, LpStatus::unbounded,
                                   LpStatus::time_limit};
        const auto status = static_cast<std::size_t>(clp.status());
        solution.status = status < known.size() ? known[status] : LpStatus::failed;
        solution.objective = clp.objectiveValue();
        solution.x.assign(clp.primalColumnSolution(), clp.primalColumnSolution() + columns);
        solution.row_dual.assign(clp.dualRowSolution(), clp.dualRowSolution() + rows);
        for (std::size_t j = 0; j < columns; ++j)
            solution.basis.push_back(from_clp(clp.getColumnStatus(static_cast<int>(j))));
        for (std::size_t i = 0; i < rows; ++i)
            solution.basis.push_back(from_clp(clp.getRowStatus(static_cast<int>(i))));
        return solution;
    }
};

}  // namespace detail

GPUSCHED_EXPORT const LpSolver* clp() noexcept {
    static const detail::Clp solver;
    return &solver;
}
#else
GPUSCHED_EXPORT const LpSolver* clp() noexcept { return nullptr; }
#endif

}  // namespace gpusched::milp
