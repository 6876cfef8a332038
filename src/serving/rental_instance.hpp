// SPDX-License-Identifier: Apache-2.0
// RentalInstance: what a request asks of rentals, prepared once: deployments, what they serve within targets, the rental problem.
#pragma once

#include "serving/batching_replica.hpp"

#include <gpusched/core/budget.hpp>
#include <gpusched/serving/latency_targets.hpp>
#include <gpusched/serving/plan_serving.hpp>
#include <gpusched/serving/rental.hpp>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace gpusched::serving::detail {

/// Whether a request is about rentals: rates, whole machines, spot prices or minimum counts.
inline bool is_rental(const ServingRequest& request, const PlannerOptions& options) {
    const RentalTerms none;
    return request.has_rates() || options.machines ||
           std::any_of(request.terms.begin(), request.terms.end(),
                       [&](const RentalTerms& terms) { return terms != none; });
}

/// A request about rentals with the deployments that are considered for it, and the rental problems that it poses.
///
/// Indices `c` are those of the deployments considered, `w` those of the kinds of requests.
class RentalInstance {
  public:
    /// One workload of one model of the request, and its targets.
    struct Kind {
        std::size_t model, workload;
        std::vector<LatencyTarget> targets{};
    };

    /// @param request, options, solver, context  must outlive the instance; a time limit of the options begins now
    /// @param running  replicas that run already; their deployments are considered in any case
    RentalInstance(const ServingRequest& request, const PlannerOptions& options,
                   const milp::AnySolver& solver, const Context& context,
                   const std::vector<PlannedReplicas>& running = {});

    /// The request as it was given.
    [[nodiscard]] const ServingRequest& request() const { return request_; }
    /// The options as they were given.
    [[nodiscard]] const PlannerOptions& options() const { return options_; }
    /// The solver of `solve`.
    [[nodiscard]] const milp::AnySolver& solver() const { return solver_; }
    /// The context of the call.
    [[nodiscard]] const Context& context() const { return context_; }

    /// What a plan is to be best at.
    [[nodiscard]] RentalGoal wanted() const;
    /// Requests arrive at rates; otherwise they are a batch.
    [[nodiscard]] bool has_rates() const { return rates_; }
    /// The kinds of requests of all models, in the order of the serving problem's workloads.
    [[nodiscard]] const std::vector<Kind>& kinds() const { return kinds_; }
    /// Some kind has targets.
    [[nodiscard]] bool any_targets() const { return any_targets_; }
    /// Some model has several kinds, which replicas may serve together or apart.
    [[nodiscard]] bool any_shared() const { return any_shared_; }
    /// Some replicas run already.
    [[nodiscard]] bool any_running() const { return any_running_; }
    /// The deployments that are considered; a throughput is 0 where the deployment cannot keep the targets of the kind at any load.
    [[nodiscard]] const ServingInstance& considered() const { return considered_; }
    /// How many deployments are possible, those that are not considered included.
    [[nodiscard]] int possible() const { return possible_; }
    /// Requests of all kinds together, a second or in the batch.
    [[nodiscard]] double total() const;

    /// What can be rented of each GPU type.
    [[nodiscard]] std::vector<RentalOffer> offers() const;
    /// The rental problem.
    /// @param part      of what replicas serve within the targets of each kind alone; above 1, up to what they serve at all
    /// @param separate  every replica serves one kind of requests
    /// @param within    count what is served within the targets; otherwise what is served at all by deployments whose idle
    ///                  replicas keep them
    [[nodiscard]] RentalProblem problem(double part, bool separate, bool within = true) const;
    /// Solves a rental problem in what is left of the time limit.
    [[nodiscard]] RentalSolution solve(const RentalProblem& problem, RentalGoal goal) const;
    /// The plan that a solution is, without latencies.
    /// @param separate  as the problem was made
    [[nodiscard]] ServingPlan planned(const RentalProblem& problem, const RentalSolution& solution,
                                      bool separate) const;

    /// The replicas of a deployment that serve all kinds, each filled to a part of the capacity; infinite where it does not serve a kind.
    [[nodiscard]] double load(std::size_t c, double part) const;
    /// The part of the capacity within targets at which some replica serves all that it can.
    [[nodiscard]] double most_part() const;
    /// $/h of everything that can be rented.
    [[nodiscard]] double all_money() const;

    /// What a deployment takes for a request of a kind.
    /// @param of  the deployments that `c` counts: those considered, or others of the request
    [[nodiscard]] KindTimes times(const ServingInstance& of, std::size_t c, std::size_t w) const;
    /// What was measured of a deployment with a kind.
    /// @param of  as for `times`
    [[nodiscard]] std::vector<MeasuredThroughput> measured_rows(const ServingInstance& of, std::size_t c,
                                                                std::size_t w) const;

  private:
    /// All possible deployments, with throughputs as in `considered`.
    struct Able {
        ServingInstance all{};
        std::vector<int> usable{};  ///< deployments that serve some kind
        std::vector<int>
            quickest{};  ///< with targets: the shortest step of each model on each GPU type alone
    };
    /// Sets the throughputs to 0 of kinds whose targets a deployment cannot keep.
    [[nodiscard]] Able able(const ServingInstance& all) const;
    /// Chooses the deployments that are considered: the best, and in any case the quickest and those of running replicas.
    void choose(const std::vector<PlannedReplicas>& running);
    /// Finds how much of each kind alone each deployment serves within the targets.
    void find_capacities();
    /// Part of its throughput that a replica may be asked for at most.
    [[nodiscard]] double utilization() const { return rates_ ? options_.utilization : 1.0; }
    /// The deployment of each configuration of `problem`.
    [[nodiscard]] std::vector<std::size_t> deployments_of(bool separate) const;

    const ServingRequest& request_;
    const PlannerOptions& options_;
    const milp::AnySolver& solver_;
    const Context& context_;
    Budget budget_;
    bool rates_;
    bool any_running_;
    bool any_targets_ = false;
    bool any_shared_ = false;
    std::vector<Kind> kinds_{};
    ServingInstance considered_{};
    int possible_ = 0;
    std::vector<int> runs_{};                      ///< [c]: replicas that run already
    std::vector<std::vector<double>> capacity_{};  ///< [c][w]: requests/s of one replica within the targets
    std::vector<std::vector<Source>> latency_source_{};  ///< [c][w]: of the latencies behind it
};

}  // namespace gpusched::serving::detail
