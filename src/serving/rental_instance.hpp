// SPDX-License-Identifier: Apache-2.0
// RentalInstance: the deployments of a request, their capacity within targets, and the rental problems with
// them; the search for the best plan, and its explanation.
#pragma once

#include "serving/workload_times.hpp"

#include <gpusched/core/budget.hpp>
#include <gpusched/serving/plan_serving.hpp>
#include <gpusched/serving/rental.hpp>
#include <gpusched/serving/serving_request.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

namespace gpusched::serving::detail {

/// Whether a request needs the rental problem: rates, whole machines, spot prices or minimum counts.
inline bool is_rental(const ServingRequest& request, const PlannerOptions& options) {
    const RentalTerms none;
    return request.has_rates() || options.machines ||
           std::any_of(request.terms.begin(), request.terms.end(),
                       [&](const RentalTerms& terms) { return terms != none; });
}

/// $/h of a piece at the lower of its prices.
inline double lowest_price(const RentalOffer& offer) {
    return offer.spot_available > 0 ? std::min(offer.price, offer.spot_price) : offer.price;
}

/// A request with the deployments considered for it, and its rental problems.
///
/// Indices `c` are deployments considered, indices `w` kinds of requests.
class RentalInstance {
  public:
    /// One workload of one model of the request, and its targets.
    struct Kind {
        std::size_t model, workload;
        std::vector<LatencyTarget> targets{};
    };

    /// @param request, options, solver, context  must outlive the instance; the time limit of the options
    ///     begins now
    /// @param running  running replicas; their deployments are always considered
    RentalInstance(const ServingRequest& request, const PlannerOptions& options,
                   const milp::AnySolver& solver, const Context& context,
                   const std::vector<PlannedReplicas>& running = {});

    [[nodiscard]] const ServingRequest& request() const { return request_; }
    [[nodiscard]] const PlannerOptions& options() const { return options_; }
    /// The estimates of a model of the request.
    [[nodiscard]] const Estimator& estimator(std::size_t model) const { return estimators_[model]; }
    [[nodiscard]] const milp::AnySolver& solver() const { return solver_; }
    [[nodiscard]] const Context& context() const { return context_; }

    /// The objective of the plan.
    [[nodiscard]] RentalGoal goal() const;
    /// Whether requests arrive at rates; otherwise they are a batch.
    [[nodiscard]] bool has_rates() const { return rates_; }
    /// The kinds of requests of all models, in the order of the workloads of the serving problem.
    [[nodiscard]] const std::vector<Kind>& kinds() const { return kinds_; }
    /// The workload of a kind of requests.
    [[nodiscard]] const ServingWorkload& workload(std::size_t w) const {
        return request_.models[kinds_[w].model].workloads[kinds_[w].workload];
    }
    /// Whether some kind has targets.
    [[nodiscard]] bool any_targets() const { return any_targets_; }
    /// Whether some model has several kinds, which replicas can serve together or separately.
    [[nodiscard]] bool any_shared() const { return any_shared_; }
    /// Whether some replicas run already.
    [[nodiscard]] bool any_running() const { return any_running_; }
    /// The deployments considered. A throughput is 0 if the deployment cannot meet the targets of the kind at
    /// any load.
    [[nodiscard]] const ServingInstance& considered() const { return considered_; }
    /// The number of possible deployments, considered or not.
    [[nodiscard]] int possible() const { return possible_; }
    /// Requests of all kinds together, per second or in the batch.
    [[nodiscard]] double total() const;

    /// The rental offer for each GPU type.
    [[nodiscard]] std::vector<RentalOffer> offers() const;
    /// The rental problem.
    /// @param part      part of the capacity within targets that replicas can use; above 1, up to their
    ///     utilization limit
    /// @param separate  every replica serves one kind of requests
    /// @param within    limit replicas to their capacity within the targets; otherwise to their utilization
    ///     limit
    [[nodiscard]] RentalProblem problem(double part, bool separate, bool within = true) const;
    /// Seconds left of the time limit; none without a limit.
    [[nodiscard]] std::optional<double> remaining_s() const { return budget_.remaining_s(); }
    /// Solves a rental problem in the rest of the time limit.
    [[nodiscard]] RentalSolution solve(const RentalProblem& problem, RentalGoal goal) const;
    /// A bound on the goal for all plans with a deployment that is not considered.
    /// @param known  for the least cost: the bound on plans of the deployments considered; a larger result
    ///     can be replaced by it
    [[nodiscard]] double bound_beyond(double known) const;
    /// The rental problem with one configuration per entry, each limited by its utilization alone.
    /// @param deployments  indices of deployments, which can repeat
    [[nodiscard]] RentalProblem problem_of(const std::vector<std::size_t>& deployments) const;
    /// The plan of a solution, without latencies.
    /// @param deployments  the deployment of each configuration of the problem
    [[nodiscard]] ServingPlan planned(const RentalProblem& problem, const RentalSolution& solution,
                                      const std::vector<std::size_t>& deployments) const;
    /// The deployment of each configuration of `problem`.
    [[nodiscard]] std::vector<std::size_t> deployments_of(bool separate) const;
    /// The status of a search that the time limit or the caller stopped; none if it can go on.
    [[nodiscard]] std::optional<milp::Status> stopped() const;

    /// The replicas of one deployment that serve all kinds, filled to a part of the capacity; infinite if it
    /// cannot serve a kind.
    [[nodiscard]] double load(std::size_t c, double part) const;
    /// Requests/s of a kind alone that one replica serves within the targets; 0 = none.
    [[nodiscard]] double capacity(std::size_t c, std::size_t w) const { return capacity_[c][w]; }
    /// Replicas to start for a plan, beyond the running ones.
    [[nodiscard]] int starts(const std::vector<PlannedReplicas>& replicas) const;
    /// The part of the capacity at which all replicas reach their utilization limit, at most 10.
    [[nodiscard]] double most_part() const;
    /// $/h of all pieces that can be rented.
    [[nodiscard]] double all_money() const;

    /// The times of requests of a kind on a deployment.
    /// @param of  the instance of index `c`: `considered()`, or another one of the request
    [[nodiscard]] WorkloadTimes times(const ServingInstance& of, std::size_t c, std::size_t w) const;
    /// The times of all requests on a deployment considered, for simulations; they are kept.
    [[nodiscard]] ReplicaTimes& replica_times(std::size_t c) const;
    /// The measurements of a deployment with a kind.
    /// @param of  as in `times`
    [[nodiscard]] std::vector<MeasuredThroughput> measured_rows(const ServingInstance& of, std::size_t c,
                                                                std::size_t w) const;

  private:
    /// All possible deployments, with throughputs as in `considered`.
    struct Usable {
        ServingInstance all{};
        std::vector<int> usable{};  ///< deployments that serve some kind
        /// With targets: the shortest step of each model on each single GPU type.
        std::vector<int> quickest{};
    };
    /// Sets the throughput of each kind to 0 whose targets a deployment cannot meet.
    [[nodiscard]] Usable usable(ServingInstance all) const;
    /// Chooses the deployments to consider: the best, the quickest, and those of running replicas.
    void choose(const std::vector<PlannedReplicas>& running);
    /// Finds the requests/s of each kind alone that each deployment serves within the targets.
    void find_capacities();
    /// The utilization limit: the largest part of its throughput that a replica can use.
    [[nodiscard]] double utilization() const { return rates_ ? options_.utilization : 1.0; }
    /// The configuration of a deployment, with the GPUs of machines that its groups occupy.
    [[nodiscard]] ServingConfiguration configuration(const ServingInstance& of, std::size_t c) const;

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
    std::vector<RequestMix> mixes_{};      ///< [w]
    std::vector<Estimator> estimators_{};  ///< by model
    ServingInstance considered_{};
    ServingInstance left_out_{};  ///< deployments that are not considered, without dominated ones
    int possible_ = 0;
    std::vector<int> runs_{};                      ///< [c]: running replicas
    std::vector<std::vector<double>> capacity_{};  ///< [c][w]: requests/s of one replica within the targets
    std::vector<std::vector<Source>> latency_source_{};  ///< [c][w]: source of the latencies behind it
    mutable std::vector<std::optional<ReplicaTimes>> replica_times_{};  ///< [c]; made on demand
};

/// The bound of a rental problem: no plan has a lower cost or a higher multiple. 0 or infinity if the solver
/// gives none.
/// @param whole  false = the bound of the linear program, which takes less time
double rental_bound(const RentalProblem& problem, RentalGoal goal, bool whole,
                    const milp::SolveOptions& options, const milp::AnySolver& solver, const Context& context);

/// The outcome of a search for the best plan.
struct RentalOutcome {
    ServingPlan plan{};
    std::optional<double> cheapest{};  ///< with running replicas: the least $/h with any number of starts
    bool refused = false;              ///< there is no plan, and no solver gave up
};

/// Searches the best plan of an instance: for rates within targets, or for a batch on whole machines.
/// @param slack with running replicas: the additional cost allowed for fewer starts, as a part; see `replan`
RentalOutcome plan_rental(const RentalInstance& instance, double slack = 0);

/// The same. Without a plan, deployments that were left out are considered, too. If there is still none,
/// `binding` lists changes of limits that would allow one.
/// @param running  as for the instance
RentalOutcome plan_rental_explained(const RentalInstance& instance, double slack = 0,
                                    const std::vector<PlannedReplicas>& running = {});

/// For a batch without a plan, fills `binding`, unless composition or routing are restricted.
/// @return true if the rental planner does find a plan
bool explain_batch(ServingPlan& plan, const ServingRequest& request, const PlannerOptions& options,
                   const milp::AnySolver& solver, const Context& context);

/// Sets the errors of the estimates that a plan is made of.
void add_errors(ServingPlan& plan, const ServingRequest& request, const EstimateOptions& options);

/// Adds hints to the message of a plan: one for each workload with requests that were left out of its trace,
/// and one for each deployment and workload with latencies measured at too few loads. Either they end at half
/// of the throughput or less, although the highest load counts as the throughput. Or the lowest load misses a target that an idle replica meets, and lower loads are unknown.
void add_hints(ServingPlan& plan, const ServingRequest& request, const PlannerOptions& options);

}  // namespace gpusched::serving::detail
