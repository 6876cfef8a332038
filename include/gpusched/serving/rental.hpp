// SPDX-License-Identifier: Apache-2.0
// The rental problem: machines or GPUs at usual and spot prices for replicas that serve rates; as data, as a program, solved.
#pragma once

#include <gpusched/core/fields.hpp>
#include <gpusched/milp/solver.hpp>
#include <gpusched/serving/catalogue.hpp>
#include <gpusched/serving/serving_problem.hpp>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace gpusched::serving {

/// What of one GPU type can be rented: pieces of so many GPUs (machines), at the usual price and at the spot price.
struct RentalOffer {
    std::string name{};
    int gpus = 1;            ///< in one piece, >= 1
    double price = 0;        ///< $/h of a piece, >= 0
    int available = 0;       ///< pieces at that price, >= 0
    double spot_price = 0;   ///< $/h of a piece that may be taken back, >= 0
    int spot_available = 0;  ///< pieces at that price, besides the others, >= 0
    int minimum = 0;         ///< none, or at least so many pieces of both, >= 0
    bool operator==(const RentalOffer&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<RentalOffer>, F&& field) {
    field("name", &RentalOffer::name);
    field("gpus", &RentalOffer::gpus, at_least(1));
    field("price", &RentalOffer::price, within(0.0, detail::largest_finite));
    field("available", &RentalOffer::available, at_least(0));
    field("spot_price", &RentalOffer::spot_price, within(0.0, detail::largest_finite));
    field("spot_available", &RentalOffer::spot_available, at_least(0));
    field("minimum", &RentalOffer::minimum, at_least(0));
}

/// What to rent and run so that every workload's rate is served: workloads' `requests` are requests per second here.
///
/// A replica of configuration c that serves rates r_w is busy for sum_w r_w / h_cw of the time, which is at most 1.
struct RentalProblem {
    std::vector<RentalOffer> offers{};
    std::vector<WorkloadRequests> workloads{};
    std::vector<ServingConfiguration> configurations{};       ///< `gpus` has one entry per offer
    double budget = std::numeric_limits<double>::infinity();  ///< $/h, >= 0
    std::vector<int> running{};  ///< replicas of each configuration that run already; empty = none
    /// By configuration: the index of the first configuration with the same replicas. Configurations that are alike differ in the workloads that
    /// they serve: a replica that runs as one of them serves as another without a start. Empty = no two configurations are alike.
    std::vector<int> alike{};
    std::optional<int> max_starts{};  ///< replicas beyond those that run at most, >= 0; absent = any number
    bool operator==(const RentalProblem&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<RentalProblem>, F&& field) {
    field("offers", &RentalProblem::offers);
    field("workloads", &RentalProblem::workloads);
    field("configurations", &RentalProblem::configurations);
    field("budget", &RentalProblem::budget);
    field("running", &RentalProblem::running);
    field("alike", &RentalProblem::alike);
    field("max_starts", &RentalProblem::max_starts, at_least(0));
}

/// @throws InvalidInput with everything that is negative, not finite (but for the budget), of the wrong length, out of range or named twice
void validate(const RentalProblem& problem);

/// The replicas that a plan starts: those beyond what runs, of configurations that are alike together.
/// @param replicas of each configuration
[[nodiscard]] std::int64_t count_starts(const RentalProblem& problem, const std::vector<int>& replicas);

/// What is minimised, or maximised.
enum class RentalGoal : std::uint8_t {
    cost,    ///< least $/h for all rates
    rate,    ///< the highest multiple of all rates within the budget
    starts,  ///< fewest replicas that do not run yet, within the budget
    gpus,    ///< fewest GPUs rented, within the budget
};
constexpr auto enum_names(RentalGoal) {
    return name_table<RentalGoal>({
        {RentalGoal::cost, "cost"},
        {RentalGoal::rate, "rate"},
        {RentalGoal::starts, "starts"},
        {RentalGoal::gpus, "gpus"},
    });
}

/// What to rent and run, and what was proved.
struct RentalSolution {
    milp::Status status = milp::Status::failed;
    std::vector<int> replicas{};               ///< of each configuration; empty where there is no plan
    std::vector<std::vector<double>> share{};  ///< [configuration][workload]: part of its requests, 0 .. 1
    std::vector<int> usual{};                  ///< pieces of each offer at the usual price
    std::vector<int> spot{};                   ///< and at the spot price
    double cost = 0;                           ///< $/h
    double multiple = 0;                       ///< of all rates that is served; 0 where there is no plan
    int starts = 0;                            ///< replicas beyond those that run
    double bound =
        0;  ///< of the goal: no plan costs less, serves a higher multiple, starts fewer, rents fewer GPUs
    bool optimal = false;  ///< the goal was proved to be within the gap of the bound
    std::string solver{};
    std::string message{};
    [[nodiscard]] bool has_plan() const noexcept { return !replicas.empty(); }
};
template <class F>
constexpr void visit_fields(std::type_identity<RentalSolution>, F&& field) {
    field("status", &RentalSolution::status);
    field("replicas", &RentalSolution::replicas);
    field("share", &RentalSolution::share);
    field("usual", &RentalSolution::usual);
    field("spot", &RentalSolution::spot);
    field("cost", &RentalSolution::cost);
    field("multiple", &RentalSolution::multiple);
    field("starts", &RentalSolution::starts);
    field("bound", &RentalSolution::bound);
    field("optimal", &RentalSolution::optimal);
    field("solver", &RentalSolution::solver);
    field("message", &RentalSolution::message);
}

/// Solves the rental problem. That it is infeasible is believed after a second answer, without presolve; CBC is asked twice always, and
/// the better plan and the weaker bound count.
/// The mixed-integer program has the columns x(c, w) (the multiple of w's rate that c serves), y(c) replicas,
/// usual(n) and spot(n) pieces, some(n) (1 = any is rented) where there is a minimum, start(c), and r, the multiple of all rates (1
/// but for `rate`). Rows, by group: `coverage` sum_c x_cw = r; `time` sum_w rate_w / h_cw x_cw <= y_c; `pieces`
/// sum_c d_nc y_c <= gpus_n (usual_n + spot_n); `budget`; `minimum`; `starts` sum of y_c over configurations that
/// are alike - start_c <= running_c, and sum_c start_c <= max_starts.
/// @throws InvalidInput for malformed problems and options; BackendError where the solver is missing
/// @note deterministic on one thread unless a time limit strikes
[[nodiscard]] RentalSolution solve_rental(const RentalProblem& problem, RentalGoal goal,
                                          const milp::SolveOptions& options, const milp::AnySolver& solver,
                                          const Context& context = {});

/// What is wrong with a solution: rates not served, replicas overloaded, pieces that are not there or not rented, money that
/// is not there; empty = nothing.
[[nodiscard]] std::vector<std::string> violations(const RentalProblem& problem,
                                                  const RentalSolution& solution, double tolerance = 1e-6);

}  // namespace gpusched::serving
