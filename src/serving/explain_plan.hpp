// SPDX-License-Identifier: Apache-2.0
// Explanations of plans: the limits that prevent one, and measurements that should be extended.
#pragma once

#include "serving/rate_planner.hpp"

namespace gpusched::serving::detail {

/// Runs a planner of an instance. Without a plan, `binding` lists changes of limits that would allow one.
ServingPlan run_explained(RatePlanner& planner, const RentalInstance& instance);

/// For a batch without a plan, fills `binding`, unless composition or routing are restricted.
/// @return true if the rental planner does find a plan
bool explain_batch(ServingPlan& plan, const ServingRequest& request, const PlannerOptions& options,
                   const milp::AnySolver& solver, const Context& context);

/// Adds a sentence to the message of a plan for each deployment and workload whose measured latencies cover
/// too few loads: they end at half of its throughput or less, although the highest load counts as its
/// throughput; or the lowest load misses a target that an idle replica meets, and nothing is known below it.
void add_measurement_hints(ServingPlan& plan, const ServingRequest& request, const PlannerOptions& options);

}  // namespace gpusched::serving::detail
