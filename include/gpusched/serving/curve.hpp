// SPDX-License-Identifier: Apache-2.0
// Cost against load, and against targets.
#pragma once

#include <gpusched/core/fields.hpp>
#include <gpusched/serving/plan_serving.hpp>

#include <type_traits>
#include <vector>

namespace gpusched::serving {

/// One point of a curve and its plan.
struct CurvePoint {
    double rate = 0;  ///< requests/s of all kinds together
    /// Of the call and, where that has none, of the request; where its kinds differ, the shortest of them.
    LatencyTargets targets{};
    ServingPlan plan{};  ///< the cheapest; none where nothing serves it
};
template <class F>
constexpr void visit_fields(std::type_identity<CurvePoint>, F&& field) {
    field("rate", &CurvePoint::rate);
    field("targets", &CurvePoint::targets);
    field("plan", &CurvePoint::plan);
}

/// The cheapest plan for each rate, or for each set of targets, or for each pair of them (rates vary slowest).
/// @param rates   requests/s of all kinds together, each > 0; empty = those of the request
/// @param targets each beside those of the options, before which they go; empty = those of the options alone
/// @throws InvalidInput with everything that is wrong; BackendError where the solver is missing
/// @note deterministic on one thread unless a time limit strikes, which is one of each plan
[[nodiscard]] std::vector<CurvePoint> curve(const ServingRequest& request, const std::vector<double>& rates,
                                            const std::vector<LatencyTargets>& targets,
                                            const PlannerOptions& options, const milp::AnySolver& solver,
                                            const Context& context = {});

}  // namespace gpusched::serving
