// SPDX-License-Identifier: Apache-2.0
// Solvers of linear and mixed-integer programs: what they take and return, and those that the library was
// built with.
#pragma once

#include <gpusched/core/context.hpp>
#include <gpusched/core/fields.hpp>
#include <gpusched/core/lp.hpp>
#include <gpusched/milp/model.hpp>

#include <concepts>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace gpusched::milp {

/// The answer of a solver. It is a claim: `checked` compares solutions with the model, and searches never
/// take `infeasible` as proof.
enum class Status : std::uint8_t {
    optimal,     ///< `x` is within the requested gap
    infeasible,  ///< there is no solution
    unbounded,   ///< there is no best solution
    time_limit,  ///< the time limit struck; `x` is the best solution so far, or empty
    cancelled,   ///< the caller stopped it; `x` likewise
    failed,      ///< it gave up, or its solution violates the model; see `message`
    feasible,    ///< `x` is a solution; the search ended without proof that no other one is better
};

/// Options of solvers.
struct SolveOptions {
    std::optional<double> time_limit{};  ///< seconds of real time, >= 0; absent = none
    double mip_gap = 0;                  ///< relative gap of solution and bound at which to stop, 0 .. 10^9
    int threads = 1;                     ///< threads of the solver, 1 .. 1024
    int seed = 0;                        ///< seed of the solver's random choices, >= 0
    /// Simplify the model first; off is slower, and avoids errors of a presolve.
    bool presolve = true;
    /// Initial solution, one entry per column; empty = none; a hint to the solver.
    std::vector<double> start{};
};
template <class F>
constexpr void visit_fields(std::type_identity<SolveOptions>, F&& field) {
    field("time_limit", &SolveOptions::time_limit, at_least(0.0));
    field("mip_gap", &SolveOptions::mip_gap, within(0.0, 1e9));
    field("threads", &SolveOptions::threads, within(1, 1024));
    field("seed", &SolveOptions::seed, at_least(0));
    field("presolve", &SolveOptions::presolve);
}

/// @throws InvalidInput with every option out of range; `start` is checked only with a model
void validate(const SolveOptions& options);
void validate(const SolveOptions& options, const Model& model);

/// The result of a solver.
struct Solution {
    Status status = Status::failed;
    double objective = 0;     ///< objective of `x`, offset included; NaN without a solution
    double bound = 0;         ///< no solution is better; minus (maximising: plus) infinity if unknown
    std::vector<double> x{};  ///< one entry per column; empty = no solution found
    std::string solver{};     ///< name of the solver
    std::string message{};    ///< why it failed or stopped
    [[nodiscard]] bool has_solution() const noexcept { return !x.empty(); }
};
template <class F>
constexpr void visit_fields(std::type_identity<Solution>, F&& field) {
    field("status", &Solution::status);
    field("objective", &Solution::objective);
    field("bound", &Solution::bound);
    field("x", &Solution::x);
    field("solver", &Solution::solver);
    field("message", &Solution::message);
}

/// A function of model, options and context (stop token, clock, progress hook) that returns a Solution.
template <class S>
concept Solver =
    requires(const S& solver, const Model& model, const SolveOptions& options, const Context& context) {
        { solver(model, options, context) } -> std::same_as<Solution>;
    };

/// A solver of the library by its name, or a solver of your own.
class AnySolver {
  public:
    /// As `find_solver`: "auto", "highs" or "cbc".
    AnySolver(const char* name) : AnySolver(std::string(name)) {}
    AnySolver(const std::string& name);
    /// @param name  its name in messages
    template <Solver S>
        requires(!std::same_as<std::remove_cvref_t<S>, AnySolver>)
    AnySolver(std::string name, S solver) : name_(std::move(name)), solve_(std::move(solver)) {}

    [[nodiscard]] const std::string& name() const noexcept { return name_; }
    [[nodiscard]] Solution operator()(const Model& model, const SolveOptions& options,
                                      const Context& context) const {
        return solve_(model, options, context);
    }

  private:
    std::string name_;
    std::function<Solution(const Model&, const SolveOptions&, const Context&)> solve_;
};

/// Returns the solvers that the library was built with, in the order of preference of "auto": "highs", "cbc".
[[nodiscard]] std::vector<std::string> available_solvers();

/// Returns the solver of that name; "auto" = the first available one.
/// @throws InvalidInput for an unknown name; BackendError with installation instructions if it was not built
///     in
[[nodiscard]] AnySolver find_solver(const std::string& name = "auto");

/// Checks a solution: rounds its integer columns, compares it with the model, and computes the objective
/// again.
///
/// If it violates a row or bound by more than `tolerance` (relative to the size of the row), the status
/// becomes `failed`, `x` is dropped, and `message` gives the reason. Adapters end with this call; use it in
/// adapters of your own.
[[nodiscard]] Solution checked(const Model& model, Solution solution, double tolerance = 1e-5);

/// Solves a model.
///
/// Two contradictions are found without a solver: a row without columns that excludes 0, and an integer
/// column without a whole number in its bounds. Solvers confuse infeasible and unbounded. If the objective
/// can be unbounded and the solver gives up or claims either, two further models without objective decide: is
/// there a solution, and is there an unbounded direction?
///
/// @param solver "auto", "highs", "cbc", or a solver of your own
/// @throws InvalidInput for malformed models and options; BackendError if the solver is missing
/// @note deterministic on one thread unless a time limit ends the search
[[nodiscard]] Solution solve(const Model& model, const SolveOptions& options = {},
                             const AnySolver& solver = "auto", const Context& context = {});

/// Finds an irreducible set of groups of rows that contradict each other: without any one of them there is a
/// solution.
///
/// It leaves out one group after the other and solves the elastic form of the rest. Empty if the model is
/// feasible. "bounds" alone if an integer column has no whole number within its bounds.
///
/// @throws BackendError if the solver gives no answer
[[nodiscard]] std::vector<std::string> conflicting_groups(const Model& model, const AnySolver& solver,
                                                          const SolveOptions& options = {},
                                                          const Context& context = {});

namespace detail {
/// A contradiction found without a solver, see `solve`; empty = none.
[[nodiscard]] std::string contradiction(const Model& model);
/// CBC and HiGHS; they throw BackendError if they were not built in.
[[nodiscard]] Solution solve_with_cbc(const Model& model, const SolveOptions& options,
                                      const Context& context);
[[nodiscard]] Solution solve_with_highs(const Model& model, const SolveOptions& options,
                                        const Context& context);
[[nodiscard]] bool cbc_built_in() noexcept;
[[nodiscard]] bool highs_built_in() noexcept;
}  // namespace detail

/// Returns the LP solver Clp, for algorithms with a `Context::lp`; nullptr if the library was built without
/// Clp.
///
/// Use it as `const Context context{.lp = milp::clp()};`. Install Clp (Debian, Ubuntu: apt-get install
/// coinor-libclp-dev) and configure with -DGPUSCHED_WITH_CLP=ON. Deterministic unless a time limit ends the search.
[[nodiscard]] const LpSolver* clp() noexcept;

}  // namespace gpusched::milp
