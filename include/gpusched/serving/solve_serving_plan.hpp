// SPDX-License-Identifier: Apache-2.0
// Solving the serving problem: directly, by binary search on the makespan (Algorithm 1), or greedily.
#pragma once

#include <gpusched/core/fields.hpp>
#include <gpusched/milp/solver.hpp>
#include <gpusched/serving/serving_milp.hpp>
#include <gpusched/serving/serving_problem.hpp>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>

namespace gpusched::serving {

/// The method that solves the serving problem.
enum class ServingMethod : std::uint8_t {
    milp,           ///< one model that minimises the makespan
    binary_search,  ///< Algorithm 1: bisection on the makespan
};

/// How the serving problem is solved.
struct ServingSearchOptions {
    ServingMethod method = ServingMethod::milp;  ///< one model, or Algorithm 1
    ServingForm form = ServingForm::rates;       ///< `milp`: the linear form, except `fixed_makespan`
    double tolerance = 1e-4;  ///< `binary_search`: stop at this relative gap of makespan and bound, 1e-9 .. 1
    bool greedy_first = true;    ///< `binary_search`: call the solver only if the greedy check finds no plan
    bool prune = true;           ///< drop dominated configurations
    bool warm_start = true;      ///< start the solver from the greedy plan
    milp::SolveOptions solve{};  ///< total time limit, gap, threads, seed, presolve; `start` is ignored
};
template <class F>
constexpr void visit_fields(std::type_identity<ServingSearchOptions>, F&& field) {
    field("method", &ServingSearchOptions::method);
    field("form", &ServingSearchOptions::form);
    field("tolerance", &ServingSearchOptions::tolerance, within(1e-9, 1.0));
    field("greedy_first", &ServingSearchOptions::greedy_first);
    field("prune", &ServingSearchOptions::prune);
    field("warm_start", &ServingSearchOptions::warm_start);
    field("solve", &ServingSearchOptions::solve, Inlined{});
}

/// The solution of a serving problem, and its bound.
struct ServingSolution {
    milp::Status status = milp::Status::failed;                  ///< how the search ended
    double makespan = std::numeric_limits<double>::quiet_NaN();  ///< seconds; NaN = no plan
    double bound = 0;                                            ///< seconds that no plan beats
    double cost = 0;                                             ///< $/h
    ServingAllocation allocation{};                              ///< empty lists = no plan
    /// The makespan (with a deadline: the cost) is within `mip_gap`, `tolerance` or 1e-6 of the bound,
    /// whichever is largest.
    bool optimal = false;
    int solver_calls = 0;   ///< calls of the solver, linear programs included
    std::string solver{};   ///< name of the solver
    std::string message{};  ///< why the search failed or stopped
    [[nodiscard]] bool has_plan() const noexcept { return makespan == makespan; }
};
template <class F>
constexpr void visit_fields(std::type_identity<ServingSolution>, F&& field) {
    field("status", &ServingSolution::status);
    field("makespan", &ServingSolution::makespan);
    field("bound", &ServingSolution::bound);
    field("cost", &ServingSolution::cost);
    field("allocation", &ServingSolution::allocation);
    field("optimal", &ServingSolution::optimal);
    field("solver_calls", &ServingSolution::solver_calls);
    field("solver", &ServingSolution::solver);
    field("message", &ServingSolution::message);
}

/// Finds a plan within `makespan` seconds greedily. Finding none proves nothing.
///
/// It adds one replica after the other: the one with the most work per part of the remaining budget and GPUs.
/// It fills the replica up to the makespan, first with the workloads at which it is best compared with the
/// other configurations. The paper calls this a knapsack approximation and does not specify it. If hundreds
/// of equal replicas would follow each other, several are added at once.
/// @throws InvalidInput for malformed problems, and a makespan that is not above 0
[[nodiscard]] std::optional<ServingAllocation> greedy_plan(const ServingProblem& problem, double makespan);

/// Finds the smallest makespan for which `greedy_plan` finds a plan, within 0.1 %, and returns this plan.
[[nodiscard]] std::optional<ServingAllocation> greedy_plan(const ServingProblem& problem);

/// Solves the serving problem.
///
/// The makespan is that of the best routing to the replicas found, a linear program. The solver's
/// "infeasible" is not trusted: the solver runs again with presolve off, and at the end the elastic form of
/// the problem, which always has a solution, must confirm it. If it does not, the search goes on. If nothing
/// can be confirmed, `optimal` is false and `bound` holds without the solver's claim. Costs are added up
/// again (to 1e-9 of the budget); if they exceed the budget, the solver runs again with a slightly smaller
/// budget.
///
/// Source: arXiv 2502.00722, section 4 and Algorithm 1. Going on from the exact makespan of the replicas
/// found is an addition.
/// @throws InvalidInput for malformed problems and options out of range; BackendError if the solver is
///     missing
[[nodiscard]] ServingSolution solve_serving_plan(const ServingProblem& problem,
                                                 const ServingSearchOptions& options = {},
                                                 const milp::AnySolver& solver = "auto",
                                                 const Context& context = {});

/// Finds the cheapest plan within `makespan` seconds (to a relative 1e-5).
///
/// The makespan of the result is that of the best routing; `bound` is the closed-form bound on the makespan.
/// Solver claims are checked as in `solve_serving_plan`. If the cost cannot be proved minimal, `optimal` is
/// false.
/// @throws InvalidInput as `solve_serving_plan`, and for a makespan that is not a finite number above 0;
///     BackendError likewise
[[nodiscard]] ServingSolution cheapest_serving_plan(const ServingProblem& problem, double makespan,
                                                    const ServingSearchOptions& options,
                                                    const milp::AnySolver& solver,
                                                    const Context& context = {});

}  // namespace gpusched::serving
