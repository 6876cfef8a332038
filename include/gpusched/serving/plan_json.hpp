// SPDX-License-Identifier: Apache-2.0
// Documents of serving plans: `gpusched.serving-plan`, `gpusched.serving-curve` and `gpusched.serving-sweep`.
#pragma once

#include <gpusched/json/document.hpp>
#include <gpusched/serving/curve.hpp>
#include <gpusched/serving/plan_serving.hpp>
#include <gpusched/serving/price_ranges.hpp>
#include <gpusched/serving/sweep_budgets.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpusched::serving {

/// What the document of a plan says besides the plan.
struct PlanExtras {
    const ReplanResult* change = nullptr;                   ///< what a replanning changed
    std::optional<std::vector<PriceRange>> price_ranges{};  ///< of a plan for rates
};

/// A plan as the document `gpusched.serving-plan`, version 2 (docs/schema): GPU types and workloads by the names of the request.
/// @param request of which this is a plan
/// @param indent  blanks per level, 0 .. 16; 0: all on one line
/// @throws InvalidInput for a plan of another request, and text that is not UTF-8
[[nodiscard]] std::string plan_to_json(const ServingPlan& plan, const ServingRequest& request,
                                       const PlanExtras& extras = {}, int indent = 2);

/// A curve as the document `gpusched.serving-curve`, version 1, whose points hold whole plans.
[[nodiscard]] std::string curve_to_json(const std::vector<CurvePoint>& points, const ServingRequest& request,
                                        int indent = 2);

/// Plans by budget as the document `gpusched.serving-sweep`, version 2, whose entries hold whole plans.
[[nodiscard]] std::string sweep_to_json(const std::vector<BudgetPlan>& plans, const ServingRequest& request,
                                        int indent = 2);

/// The replicas of a plan, which `replan` starts from: of a document `gpusched.serving-plan` of version 1 or 2, of which nothing
/// else is read, or of a list such as its `replicas`.
///
/// Replicas on GPU types that the request does not have get a deployment without stages, which equals none that is possible.
/// @param request whose GPU types they are to run on; the plan's may be others, or in another order
/// @throws InvalidInput with everything that is wrong, each problem with its place
[[nodiscard]] std::vector<PlannedReplicas>
replicas_from_json(std::string_view text, const ServingRequest& request, std::string_view source = "plan");
/// The same of a document that is parsed already.
[[nodiscard]] std::vector<PlannedReplicas> replicas_from_json(const json::Document& document,
                                                              const ServingRequest& request);

/// The same of a file.
/// @throws BackendError when it cannot be read
[[nodiscard]] std::vector<PlannedReplicas> read_replicas(const std::string& path,
                                                         const ServingRequest& request);

/// The replicas of a plan with what each of them serves, which `simulate_latency` takes: of a document `gpusched.serving-plan`, or a
/// list of replicas of one's own.
///
/// Replicas have `model`, `count`, `deployment` or `stages`, and `share`: of each kind of requests, by its name, the part that they
/// serve together (0 unless named). `requests_per_s` and `source` of one of them, by kind, are those that `plan_serving` would
/// believe unless given. Other fields are ignored.
/// @param options of the estimates
/// @throws InvalidInput with everything that is wrong, each problem with its place
[[nodiscard]] std::vector<PlannedReplicas> served_replicas_from_json(std::string_view text,
                                                                     const ServingRequest& request,
                                                                     const EstimateOptions& options = {},
                                                                     std::string_view source = "plan");
/// The same of a document that is parsed already.
[[nodiscard]] std::vector<PlannedReplicas> served_replicas_from_json(const json::Document& document,
                                                                     const ServingRequest& request,
                                                                     const EstimateOptions& options = {});

}  // namespace gpusched::serving
