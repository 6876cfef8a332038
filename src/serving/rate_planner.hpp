// SPDX-License-Identifier: Apache-2.0
// RatePlanner: the search for a plan of rentals: rates within targets, or a batch on whole machines.
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
    /// @param slack     where replicas run: part of the least cost that starting fewer may cost; see `replan`
    explicit RatePlanner(const RentalInstance& instance, double slack = 0)
        : instance_(instance), latencies_(instance), slack_(slack) {}

    /// Searches, once.
    ServingPlan run();

    /// After `run`: no plan, and not because a solver gave up. `WhyRefused` says what would do.
    [[nodiscard]] bool refused() const { return refused_; }
    /// After `run`, where replicas run: the cheapest plan, however many replicas it starts.
    [[nodiscard]] const std::optional<ServingPlan>& cheapest() const { return cheapest_; }

  private:
    /// How a try to fill replicas to some part of their capacity ended.
    enum class Tried : std::uint8_t {
        kept,       ///< the plan keeps the targets
        missed,     ///< a plan was found, and its simulation misses a target: fill less
        no_rental,  ///< GPUs or budget do not suffice: fill more
    };

    /// Looks for plans in one way after another.
    /// @param least $/h that no plan undercuts
    void search(RentalGoal goal, double least);
    /// Searches the fullest replicas that keep the targets. Fuller replicas rent less; emptier ones wait less.
    void fill(RentalGoal goal, bool separate);
    /// Searches plans that cost less than the best one, down to `least`. The part of the capacity at which a sum of money suffices is that
    /// of the plan with the highest rate for this money, which waits less than others for as much.
    void spend_less(double least, bool separate);
    /// Tries replicas of one deployment alone that serve all kinds, from as few as can serve them at all. The program, which adds up
    /// what kinds take alone, prefers other deployments, of which a simulation may keep less.
    void one_deployment();
    /// Of the plans that cost at most `slack` more than the cheapest, remembers one that starts fewest replicas, and of these the cheapest.
    void start_few();

    /// Solves one rental and remembers it where it keeps the targets and is the best so far.
    /// @param only the one deployment whose replicas may run; absent = all
    Tried attempt(RentalGoal goal, double part, bool separate, std::optional<std::size_t> only = {});
    /// Solves for the cost, or for the rate and then for the least cost of that rate; and where GPUs are rented for nothing,
    /// for the fewest of them.
    [[nodiscard]] RentalSolution solve_frugally(RentalProblem problem, RentalGoal goal) const;

    static constexpr double least_part = 0.2;  ///< of the capacity; emptier replicas are not tried
    static constexpr int most_more = 6;        ///< replicas of one deployment beyond the fewest, less one
    const RentalInstance& instance_;
    PlanLatencies latencies_;
    double slack_;
    std::optional<ServingPlan> best_{}, cheapest_{};
    int starts_ = 0;  ///< of the best plan
    bool refused_ = false;
};

}  // namespace gpusched::serving::detail
