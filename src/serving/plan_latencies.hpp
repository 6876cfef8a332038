// SPDX-License-Identifier: Apache-2.0
// PlanLatencies: the latencies of a plan of rentals, simulated with its own arrivals or measured.
#pragma once

#include "serving/rental_instance.hpp"

#include <gpusched/serving/serving_plan.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gpusched::serving::detail {

/// Finds the latencies of plans of one instance, and whether they keep the targets.
class PlanLatencies {
  public:
    /// @param instance  must outlive this object
    explicit PlanLatencies(const RentalInstance& instance) : instance_(instance) {}

    /// Simulates a plan, with targets several times, since of many plans that are tried one may keep them by luck; the longest latencies
    /// count. Whether all targets are kept every time.
    bool simulate(ServingPlan& plan) const;

  private:
    /// The latencies of each kind in one simulation of a plan.
    [[nodiscard]] std::vector<PlannedLatency> simulated_latencies(const ServingPlan& plan,
                                                                  std::uint64_t seed) const;
    /// How many requests a simulation has; more where a kind with targets is rare, since a percentile of it needs requests of it.
    [[nodiscard]] int simulated_requests() const;
    /// Puts in measured latencies: where a latency with targets was measured on all replicas of a kind, each alone with it, its
    /// percentiles with targets are the longest measured ones at the replicas' loads. Of the others nothing is known: rows say no
    /// other percentile.
    void put_measured(PlannedLatency& latency, const std::vector<const PlannedReplicas*>& serving,
                      std::size_t w, bool first_token) const;
    /// Puts in what an idle replica takes, for a kind so rare that none of its requests was simulated.
    void alone(PlannedLatency& latency, const PlannedReplicas& replicas, std::size_t w) const;
    /// The deployment of a plan's replicas, among those considered.
    [[nodiscard]] std::size_t index_of(const PlannedReplicas& replicas) const;

    static constexpr double rare_requests = 250;  ///< of the rarest kind with targets that a simulation has
    static constexpr int most_simulated =
        300'000;  ///< requests of one simulation, unless the options say more
    static constexpr std::uint64_t simulations = 3;  ///< of a plan with targets
    const RentalInstance& instance_;
};

}  // namespace gpusched::serving::detail
