// SPDX-License-Identifier: Apache-2.0
// The rental problem: rent machines or GPUs at regular and spot prices for replicas that serve rates.
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

/// The offer for one GPU type: pieces of one or several GPUs (machines), at the regular price and at the spot
/// price.
struct RentalOffer {
    std::string name{};
    int gpus = 1;            ///< GPUs in one piece, >= 1
    double price = 0;        ///< $/h of a piece, >= 0
    int available = 0;       ///< pieces at that price, >= 0
    double spot_price = 0;   ///< $/h of a spot piece, which the provider can take back, >= 0
    int spot_available = 0;  ///< spot pieces, in addition to the others, >= 0
    int minimum = 0;         ///< rent none or at least this many pieces of both kinds, >= 0
    bool operator==(const RentalOffer&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<RentalOffer>, F&& field) {
    field("name", &RentalOffer::name);
    field("gpus", &RentalOffer::gpus, at_least(1));
    field("price", &RentalOffer::price, detail::not_negative);
    field("available", &RentalOffer::available, at_least(0));
    field("spot_price", &RentalOffer::spot_price, detail::not_negative);
    field("spot_available", &RentalOffer::spot_available, at_least(0));
    field("minimum", &RentalOffer::minimum, at_least(0));
}

/// The rental problem: rent pieces and run replicas so that every workload's rate is served.
///
/// `requests` of a workload are requests per second here. A replica of configuration c that serves rates r_w
/// is busy for sum_w r_w / h_cw of the time, at most 1.
struct RentalProblem {
    std::vector<RentalOffer> offers{};
    std::vector<WorkloadRequests> workloads{};
    std::vector<ServingConfiguration> configurations{};       ///< `gpus` has one entry per offer
    double budget = std::numeric_limits<double>::infinity();  ///< $/h, >= 0
    std::vector<int> running{};  ///< replicas of each configuration that already run; empty = none
    /// Per configuration, the index of the first one with the same deployment. Such configurations differ
    /// only in the workloads that they serve, so a running replica can change between them without a start.
    /// Empty = all differ.
    std::vector<int> alike{};
    std::optional<int> max_starts{};  ///< most replicas beyond the running ones, >= 0; absent = no limit
    bool operator==(const RentalProblem&) const = default;
};

/// @throws InvalidInput with every negative or non-finite number (except the budget), list of the wrong
///     length, index out of range, and name that appears twice
void validate(const RentalProblem& problem);

/// Returns the replicas to start: those beyond the running ones. Configurations with the same deployment
/// count together.
/// @param replicas replicas of each configuration
[[nodiscard]] std::int64_t count_starts(const RentalProblem& problem, const std::vector<int>& replicas);

/// The objective of the rental problem.
enum class RentalGoal : std::uint8_t {
    cost,    ///< least $/h for all rates
    rate,    ///< the highest multiple of all rates within the budget
    starts,  ///< fewest replicas to start, within the budget
    gpus,    ///< fewest GPUs rented, within the budget
};

/// The solution of a rental problem, and its bound.
struct RentalSolution {
    milp::Status status = milp::Status::failed;
    std::vector<int> replicas{};               ///< replicas of each configuration; empty = no plan
    std::vector<std::vector<double>> share{};  ///< [configuration][workload]: share of its requests, 0 .. 1
    std::vector<int> usual{};                  ///< pieces of each offer at the regular price
    std::vector<int> spot{};                   ///< pieces of each offer at the spot price
    double cost = 0;                           ///< $/h
    double multiple = 0;                       ///< multiple of all rates that is served; 0 = no plan
    int starts = 0;                            ///< replicas beyond the running ones
    double bound = 0;      ///< of the goal: no plan has a lower cost (starts, GPUs) or a higher multiple
    bool optimal = false;  ///< the goal is within the gap of the bound
    std::string solver{};
    std::string message{};
    [[nodiscard]] bool has_plan() const noexcept { return !replicas.empty(); }
};

/// Solves the rental problem as a mixed-integer program.
///
/// The solver's "infeasible" is checked by a second run without presolve. CBC always runs twice; the better
/// plan and the weaker bound count.
///
/// Columns: x(c, w), the multiple of w's rate that c serves; y(c), replicas; usual(n) and spot(n), pieces;
/// some(n), 1 if any is rented, only with a minimum; start(c), replicas to start; r, the multiple of all
/// rates, fixed at 1 unless the goal is `rate`. Rows by group: `coverage` sum_c x_cw = r; `time` sum_w rate_w
/// / h_cw x_cw <= y_c; `pieces` sum_c d_nc y_c <= gpus_n (usual_n + spot_n); `budget`; `minimum`; `starts`
/// sum of y_c over equal deployments - start_c <= running_c, and sum_c start_c <= max_starts.
/// @throws InvalidInput for malformed problems and options; BackendError if the solver is missing
/// @note deterministic on one thread unless a time limit ends the search
[[nodiscard]] RentalSolution solve_rental(const RentalProblem& problem, RentalGoal goal,
                                          const milp::SolveOptions& options, const milp::AnySolver& solver,
                                          const Context& context = {});

/// Returns the violations of a solution: rates not served, overloaded replicas, too many pieces, too much
/// cost; empty = none.
[[nodiscard]] std::vector<std::string> violations(const RentalProblem& problem,
                                                  const RentalSolution& solution, double tolerance = 1e-6);

}  // namespace gpusched::serving
