// SPDX-License-Identifier: Apache-2.0
// Linear programs: a small problem as data, and what a solver of them must do.
#pragma once

#include <gpusched/config.hpp>

#include <cstdint>
#include <optional>
#include <vector>

namespace gpusched {

/// minimise objective . x subject to row_lower <= A x <= row_upper and column_lower <= x <= column_upper.
///
/// A is stored by columns: the entries of column j are column_start[j] .. column_start[j + 1] - 1. Unbounded sides are
/// plus or minus infinity.
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

/// Where a column or a row stands in a basis: in it, or outside at one of its bounds, at none, or held at its only value.
enum class LpPosition : std::uint8_t { basic, at_lower_bound, at_upper_bound, free, fixed };

/// Where a solver ended, to start a similar problem from: one entry per column, then one per row.
using LpBasis = std::vector<LpPosition>;

struct LpSolution {
    LpStatus status = LpStatus::failed;
    double objective = 0;
    std::vector<double> x{};
    std::vector<double> row_dual{};  ///< change of the optimum per unit of a row's side
    LpBasis basis{};
};

/// A solver of linear programs, handed to algorithms in `Context::lp`; `milp::clp()` is the library's own.
///
/// Algorithms do not take its numbers as proof: bounds are computed from the duals with care for rounding.
class GPUSCHED_EXPORT LpSolver {
  public:
    LpSolver() = default;
    LpSolver(const LpSolver&) = delete;
    LpSolver& operator=(const LpSolver&) = delete;
    virtual ~LpSolver() = default;

    /// Solves one problem. May be called from several threads at once.
    ///
    /// @param start a basis of an earlier solve of the same rows and the first columns; columns beyond it start at
    ///     their lower bound; empty = none
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
