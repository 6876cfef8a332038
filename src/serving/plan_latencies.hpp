// SPDX-License-Identifier: Apache-2.0
// PlanLatencies: the latencies of a plan of rentals, simulated with its own arrivals or measured.
#pragma once

#include "serving/rental_instance.hpp"

#include <gpusched/serving/plan_serving.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gpusched::serving::detail {

/// Finds the latencies of plans of one instance, and whether they meet the targets.
class PlanLatencies {
  public:
    /// @param instance  must outlive this object
    explicit PlanLatencies(const RentalInstance& instance) : instance_(instance) {}

    /// Simulates a plan and sets its latencies. With targets it simulates several times and keeps the longest
    /// latencies, since one of many plans could meet the targets by chance.
    /// @return whether all targets are met every time
    bool simulate(ServingPlan& plan) const;

  private:
    /// The latencies of each kind in one simulation of a plan.
    [[nodiscard]] std::vector<PlannedLatency> simulated_latencies(const ServingPlan& plan,
                                                                  std::uint64_t seed) const;
    /// The requests of a simulation: more if a kind with targets is rare, since its percentiles need enough
    /// requests.
    [[nodiscard]] int simulated_requests() const;
    /// Sets measured latencies if TTFT (else TPOT) has targets and was measured on all replicas of the kind,
    /// which serve only this kind. Percentiles with targets get the longest latency at the loads of the
    /// replicas; the others become unknown.
    void set_measured(PlannedLatency& latency, const std::vector<const PlannedReplicas*>& serving,
                      std::size_t w, bool first_token) const;
    /// Sets the latencies of an idle replica, for a kind so rare that none of its requests was simulated.
    void set_idle(PlannedLatency& latency, const PlannedReplicas& replicas, std::size_t w) const;
    /// The index of the deployment of replicas among those considered.
    [[nodiscard]] std::size_t index_of(const PlannedReplicas& replicas) const;

    static constexpr double rare_requests = 250;  ///< simulated requests of the rarest kind with targets
    /// Most requests of a simulation, unless the options set more.
    static constexpr int most_simulated = 300'000;
    static constexpr std::uint64_t simulations = 3;  ///< simulations of a plan with targets
    const RentalInstance& instance_;
};

}  // namespace gpusched::serving::detail
