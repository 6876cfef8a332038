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

/// What a solver says at the end. It is a claim: `checked` compares solutions with the model, and searches
/// never take `infeasible` as proof.
enum class Status : std::uint8_t {
    optimal,     ///< `x` is within the gap that was asked for
    infeasible,  ///< the solver found that there is no solution
    unbounded,   ///< the solver found that there is no best one
    time_limit,  ///< the limit struck; `x` holds the best solution so far, or nothing
    cancelled,   ///< the caller asked it to stop; likewise
    failed,      ///< it gave up, or what it returned does not satisfy the model; see `message`
};
constexpr auto enum_names(Status) {
    return name_table<Status>({
        {Status::optimal, "optimal"},
        {Status::infeasible, "infeasible"},
        {Status::unbounded, "unbounded"},
        {Status::time_limit, "time_limit"},
        {Status::cancelled, "cancelled"},
        {Status::failed, "failed"},
    });
}

/// How a model is solved.
struct SolveOptions {
    /// Seconds of real time, >= 0; absent = none.
    std::optional<double> time_limit{};
    /// Relative gap between solution and bound at which the solver may stop, 0 .. 10^9.
    double mip_gap = 0;
    /// Threads the solver may use, 1 .. 1024.
    int threads = 1;
    /// Where the solver's random choices start, >= 0.
    int seed = 0;
    /// Let the solver simplify the model first. Off is slower, and a way round a presolve that is wrong.
    bool presolve = true;
    /// A solution to start from, one entry per column; empty = none. Solvers may ignore it.
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

/// @throws InvalidInput with every option out of range; `start` is compared with the model alone
void validate(const SolveOptions& options);
void validate(const SolveOptions& options, const Model& model);

/// What a solver found.
struct Solution {
    Status status = Status::failed;
    double objective = 0;  ///< of `x`, with the model's offset; NaN where there is none
    double bound = 0;  ///< no solution is better; minus (maximising: plus) infinity where nothing is known
    std::vector<double> x{};  ///< one entry per column; empty where no solution was found
    std::string solver{};     ///< who solved it
    std::string message{};    ///< what went wrong, where something did
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

/// Takes a model, options and the surroundings (stop token, clock, progress hook), and returns what it found.
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

/// The solvers that the library was built with, in the order in which `auto` prefers them: "highs", "cbc".
[[nodiscard]] std::vector<std::string> available_solvers();

/// The solver of that name; "auto" = the first that is available.
/// @throws InvalidInput for an unknown name; BackendError that says what to install where it was not built in
[[nodiscard]] AnySolver find_solver(const std::string& name = "auto");

/// Rounds the integer columns of the solution, and compares it with the model: where it violates a row or a
/// bound by more than `tolerance` (relative to the row's size) the status becomes `failed`, `x` is dropped,
/// and `message` says what is wrong. The objective is computed again from the model. Adapters end with this;
/// it is public for adapters of your own.
[[nodiscard]] Solution checked(const Model& model, Solution solution, double tolerance = 1e-5);

/// Solves a model.
///
/// What needs no solver is said without one: a row without columns that excludes 0, an integer column without
/// a whole number in its bounds. Solvers mix up infeasible and unbounded; where the objective could be
/// unbounded, a claim of either, and giving up, is looked into by asking twice more without objective: for
/// any solution, and for a direction without end.
///
/// @param solver "auto", "highs" or "cbc"
/// @throws InvalidInput for malformed models and options; BackendError where the solver is missing
/// @note deterministic on one thread unless a time limit strikes
[[nodiscard]] Solution solve(const Model& model, const SolveOptions& options = {},
                             const AnySolver& solver = "auto", const Context& context = {});

/// Which groups of rows contradict each other: an irreducible set (without any one of them there is a
/// solution), found by leaving out one group after the other and solving the elastic form of the rest. Empty
/// where the model is feasible; "bounds" alone where an integer column has no whole number within its bounds,
/// whatever the rows.
///
/// @throws BackendError when the solver does not answer
[[nodiscard]] std::vector<std::string> conflicting_groups(const Model& model, const AnySolver& solver,
                                                          const SolveOptions& options = {},
                                                          const Context& context = {});

namespace detail {
/// What contradicts itself whatever the solver: see `solve`. Empty where nothing does.
[[nodiscard]] std::string contradiction(const Model& model);
/// CBC and HiGHS; they throw BackendError where they were not built in.
[[nodiscard]] Solution solve_with_cbc(const Model& model, const SolveOptions& options,
                                      const Context& context);
[[nodiscard]] Solution solve_with_highs(const Model& model, const SolveOptions& options,
                                        const Context& context);
[[nodiscard]] bool cbc_built_in() noexcept;
[[nodiscard]] bool highs_built_in() noexcept;
}  // namespace detail

/// The solver Clp: `const Context context{.lp = milp::clp()};`. nullptr where the library was built without
/// Clp.
///
/// Install Clp (Debian, Ubuntu: apt-get install coinor-libclp-dev) and configure with -DGPUSCHED_WITH_CLP=ON;
/// with the headers alone and without CMake, define GPUSCHED_HAS_CLP and link Clp and CoinUtils.
/// Deterministic as long as no time limit strikes.
[[nodiscard]] const LpSolver* clp() noexcept;

}  // namespace gpusched::milp
