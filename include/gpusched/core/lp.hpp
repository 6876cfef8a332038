// SPDX-License-Identifier: Apache-2.0
// Linear programs: a small problem as data, and the interface of its solvers.
#pragma once

#include <gpusched/config.hpp>

#include <cstdint>
#include <optional>
#include <vector>

namespace gpusched {

/// minimise objective . x subject to row_lower <= A x <= row_upper and column_lower <= x <= column_upper.
///
/// A is stored by columns: the entries of column j are column_start[j] .. column_start[j + 1] - 1. Unbounded
/// sides are plus or minus infinity.
struct LpProblem {
    std::vector<std::int64_t> column_start{0};
    std::vector<int> row_index{};
    std::vector<double> value{};
    std::vector<double> objective{}, column_lower{}, column_upper{};
    std::vector<double> row_lower{}, row_upper{};

    [[nodiscard]] int rows() const noexcept { return static_cast<int>(row_lower.size()); }
    [[nodiscard]] int columns() const noexcept { return static_cast<int>(objective.size()); }
};

/// @throws InvalidInput for arrays whose sizes do not agree and row indices out of range
void validate(const LpProblem& problem);

enum class LpStatus : std::uint8_t { optimal, infeasible, unbounded, time_limit, failed };

/// The position of a column or row: in the basis, at one of its bounds, at none of them, or fixed at its only
/// value.
enum class LpPosition : std::uint8_t { basic, at_lower_bound, at_upper_bound, free, fixed };

/// The final basis of a solve, from which a similar problem can start: one entry per column, then one per
/// row.
using LpBasis = std::vector<LpPosition>;

struct LpSolution {
    LpStatus status = LpStatus::failed;
    double objective = 0;
    std::vector<double> x{};
    std::vector<double> row_dual{};  ///< change of the optimum per unit of a row's limit
    LpBasis basis{};
};

/// A solver of linear programs, passed to algorithms in `Context::lp`. The library provides `milp::clp()`.
///
/// Its numbers are not a proof: algorithms compute bounds from the duals and account for rounding.
class GPUSCHED_EXPORT LpSolver {
  public:
    LpSolver() = default;
    LpSolver(const LpSolver&) = delete;
    LpSolver& operator=(const LpSolver&) = delete;
    virtual ~LpSolver() = default;

    /// Solves one problem. May be called from several threads at once.
    ///
    /// @param start a basis of an earlier solve of the same rows and the first columns; columns beyond it
    ///     start at their lower bound; empty = none
    /// @param time_limit seconds
    /// @throws InvalidInput for a malformed problem
    [[nodiscard]] LpSolution solve(const LpProblem& problem, const LpBasis& start = {},
                                   std::optional<double> time_limit = std::nullopt) const {
        validate(problem);
        return solve_valid(problem, start, time_limit);
    }

  private:
    [[nodiscard]] virtual LpSolution solve_valid(const LpProblem& problem, const LpBasis& start,
                                                 std::optional<double> time_limit) const = 0;
};

}  // namespace gpusched
