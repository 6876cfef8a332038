// Linear programs: a small problem as data, solved by whatever solver the library was built with.
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
    std::vector<int> row_index;
    std::vector<double> value;
    std::vector<double> objective, column_lower, column_upper;
    std::vector<double> row_lower, row_upper;

    [[nodiscard]] int rows() const noexcept { return static_cast<int>(row_lower.size()); }
    [[nodiscard]] int columns() const noexcept { return static_cast<int>(objective.size()); }
};

enum class LpStatus : std::uint8_t { optimal, infeasible, unbounded, time_limit, failed };

/// Where a solver ended, to start a similar problem from: one entry per column, then one per row.
using LpBasis = std::vector<std::uint8_t>;
/// The entry of a column that starts at its lower bound.
inline constexpr std::uint8_t lp_at_lower_bound = 3;

struct LpSolution {
    LpStatus status = LpStatus::failed;
    double objective = 0;
    std::vector<double> x;
    std::vector<double> row_dual;  ///< change of the optimum per unit of a row's side
    LpBasis basis;
};

/// True if the library was built with an LP solver.
[[nodiscard]] bool lp_available() noexcept;

/// @throws BackendError that says what to install when the library was built without an LP solver
void require_lp();

/// Solves a linear program with Clp.
///
/// @param start a basis of an earlier solve of the same rows and the first columns; columns beyond it start at a bound
/// @param time_limit seconds
/// @throws InvalidInput for arrays whose sizes do not agree; BackendError when no solver was compiled in
/// @note deterministic as long as no time limit strikes. Values are floating point: do not take them as proof
[[nodiscard]] LpSolution solve_lp(const LpProblem& problem, const LpBasis& start = {},
                                  std::optional<double> time_limit = std::nullopt);

}  // namespace gpusched

#ifdef GPUSCHED_HEADER_ONLY
#include <gpusched/core/impl/lp.ipp>
#endif
