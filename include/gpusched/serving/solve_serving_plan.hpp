// SPDX-License-Identifier: Apache-2.0
// The serving problem solved: directly, or by binary search on the makespan (Algorithm 1).
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

namespace gpusched {
class Budget;
}

namespace gpusched::serving {

enum class ServingMethod : std::uint8_t {
    milp,           ///< one model, the makespan minimised
    binary_search,  ///< Algorithm 1: is there a plan within T? for ever closer T
};
constexpr auto enum_names(ServingMethod) {
    return name_table<ServingMethod>({
        {ServingMethod::milp, "milp"},
        {ServingMethod::binary_search, "binary_search"},
    });
}

/// How the serving problem is solved.
struct ServingSearchOptions {
    ServingMethod method = ServingMethod::milp;  ///< directly, or by Algorithm 1
    /// `milp`: which form; not `fixed_makespan`, which is what the search asks.
    ServingForm form = ServingForm::rates;
    /// `binary_search`: it ends when makespan and bound differ by less than this part of the makespan, 1e-9 .. 1.
    double tolerance = 1e-4;
    /// `binary_search`: ask the greedy check first, and the solver only where that finds nothing.
    bool greedy_first = true;
    /// Leave dominated configurations out.
    bool prune = true;
    /// Start the solver from the greedy plan.
    bool warm_start = true;
    /// Time limit (for everything together), gap, threads, seed, presolve; `start` is not used.
    milp::SolveOptions solve{};
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

/// What to rent and run, and what was proved.
struct ServingSolution {
    milp::Status status = milp::Status::failed;                  ///< `optimal` where the plan is, see there
    double makespan = std::numeric_limits<double>::quiet_NaN();  ///< seconds; NaN where there is no plan
    double bound = 0;                                            ///< seconds that no plan beats
    double cost = 0;                                             ///< $/h
    ServingAllocation
        allocation{};  ///< of the problem's own configurations; empty lists where there is no plan
    /// The makespan (with a deadline: the cost) was proved to be the best within `mip_gap`, `tolerance` or 1e-6, whichever is
    /// largest.
    bool optimal = false;
    int solver_calls = 0;   ///< how often the solver was asked, linear programs included
    std::string solver{};   ///< who solved it
    std::string message{};  ///< what went wrong, where something did
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

/// A plan within `makespan` seconds, found greedily; none where it finds none, which proves nothing.
///
/// Buys one replica after the other, the one with most work per part of what is left of money and GPUs, and fills it up to
/// the makespan with the workloads at which it is best compared with the others. One way to do what the paper calls knapsack
/// approximation and does not specify. Where hundreds of alike replicas would follow each other, several are bought at once.
/// @throws InvalidInput for malformed problems, and a makespan that is not above 0
[[nodiscard]] std::optional<ServingAllocation> greedy_plan(const ServingProblem& problem, double makespan);

/// The best plan of `greedy_plan` over the makespan, within a thousandth; none where it finds none.
[[nodiscard]] std::optional<ServingAllocation> greedy_plan(const ServingProblem& problem);

namespace detail {
/// The same of a valid problem, within a budget of time: nothing where it runs out on the way.
[[nodiscard]] std::optional<ServingAllocation> greedy_plan_within(const ServingProblem& problem,
                                                                  double makespan, Budget& budget);
/// The best until then. The first plan, of the slowest makespan, is made in any case: it takes few replicas.
[[nodiscard]] std::optional<ServingAllocation> best_greedy_plan(const ServingProblem& problem,
                                                                Budget& budget);
}  // namespace detail

/// Solves the serving problem.
///
/// The makespan is that of the best routing to the replicas found (a linear program). A solver's word that there is no plan is
/// never enough: it is asked again with presolve off, and in the end the elastic form of the problem, which always has a
/// solution, must confirm it; where it does not, the search goes on, and where nothing can be confirmed the plan is returned
/// with `optimal` false and the bound that holds without the solver's word. Nor is its word that a plan is affordable: costs
/// are added up again (to 1e-9 of the budget), and it is asked again with a little less money where they do not fit.
///
/// Source: arXiv 2502.00722, section 4 and Algorithm 1; after each yes the search jumps to the exact makespan of the replicas
/// found, which is ours.
/// @throws InvalidInput for malformed problems and options out of range; BackendError where the solver is missing
[[nodiscard]] ServingSolution solve_serving_plan(const ServingProblem& problem,
                                                 const ServingSearchOptions& options,
                                                 const milp::AnySolver& solver, const Context& context = {});
[[nodiscard]] ServingSolution solve_serving_plan(const ServingProblem& problem,
                                                 const ServingSearchOptions& options = {},
                                                 const std::string& solver = "auto",
                                                 const Context& context = {});

/// The cheapest plan within `makespan` seconds (to 1e-5 of them): `cost` is minimal, the makespan that of the best routing.
/// `bound` is the closed-form bound on the makespan. Wrong answers of a solver are met as above; where the cost cannot be proved
/// minimal, the cheapest plan found is returned with `optimal` false.
/// @throws as above; InvalidInput for a makespan that is not a number above 0
[[nodiscard]] ServingSolution cheapest_serving_plan(const ServingProblem& problem, double makespan,
                                                    const ServingSearchOptions& options,
                                                    const milp::AnySolver& solver,
                                                    const Context& context = {});

}  // namespace gpusched::serving
