// SPDX-License-Identifier: Apache-2.0
// RatePlanner: searches the best plan of a rental instance: rates within targets, or a batch on whole
// machines.
#pragma once

#include "serving/plan_latencies.hpp"
#include "serving/rental_instance.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>

namespace gpusched::serving::detail {

/// One search for the best plan of an instance.
class RatePlanner {
  public:
    /// @param instance  must outlive the planner
    /// @param slack     with running replicas: the additional cost allowed for fewer starts, as a part; see
    ///     `replan`
    explicit RatePlanner(const RentalInstance& instance, double slack = 0)
        : instance_(instance), latencies_(instance), slack_(slack) {}

    /// Searches the best plan. Call it once.
    ServingPlan run();

    /// After `run`: there is no plan, and no solver gave up.
    [[nodiscard]] bool refused() const { return refused_; }
    /// After `run` with running replicas: the cheapest plan with any number of starts.
    [[nodiscard]] const std::optional<ServingPlan>& cheapest() const { return cheapest_; }

  private:
    /// The outcome of a rental that fills replicas to some part of their capacity.
    enum class Outcome : std::uint8_t {
        kept,       ///< the plan meets the targets
        missed,     ///< the simulation of the plan misses a target: fill less
        no_rental,  ///< GPUs or budget do not suffice: fill more
    };

    /// Runs the searches below.
    /// @param least lower bound on the $/h
    void search(RentalGoal goal, double least);
    /// Searches the fullest replicas that meet the targets, by bisection. Fuller replicas need fewer GPUs and
    /// wait longer.
    void fill(RentalGoal goal, bool separate);
    /// Searches cheaper plans down to `least`, by bisection on the budget. For each budget it uses the part
    /// of the capacity of the plan with the highest rate, because its requests wait least.
    void spend_less(double least, bool separate);
    /// Tries replicas of a single deployment that serve all kinds, starting from the fewest possible. The
    /// program adds up the capacities of kinds served alone, so it can prefer deployments that do worse in
    /// the simulation.
    void one_deployment();
    /// Keeps the plan with the fewest starts, then the lowest cost, of the plans that cost at most `slack`
    /// more than the cheapest.
    void start_few();

    /// Solves one rental, and keeps its plan if it meets the targets and is the best so far.
    /// @param only the only deployment to use; absent = all
    Outcome attempt(RentalGoal goal, double part, bool separate, std::optional<std::size_t> only = {});
    /// Solves for the goal, for a rate also for its least cost, and if free GPUs are rented, for the fewest
    /// of them.
    [[nodiscard]] RentalSolution solve_frugally(RentalProblem problem, RentalGoal goal) const;

    static constexpr double least_part = 0.2;  ///< smallest part of the capacity that is tried
    static constexpr int counts_tried = 6;     ///< numbers of replicas of a single deployment that are tried
    const RentalInstance& instance_;
    PlanLatencies latencies_;
    double slack_;
    std::optional<ServingPlan> best_{}, cheapest_{};
    int starts_ = 0;  ///< starts of the best plan
    bool refused_ = false;
};

}  // namespace gpusched::serving::detail
