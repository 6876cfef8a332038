// SPDX-License-Identifier: Apache-2.0
// Documents of serving plans: `gpusched.serving-plan`, `gpusched.serving-curve` and `gpusched.serving-sweep`.
#pragma once

#include <gpusched/json/document.hpp>
#include <gpusched/serving/plan_serving.hpp>
#include <gpusched/serving/sensitivity.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpusched::serving {

/// Optional parts of the document of a plan.
struct PlanExtras {
    const ReplanResult* change = nullptr;                   ///< the changes by a replanning
    std::optional<std::vector<PriceRange>> price_ranges{};  ///< the price ranges of a plan for rates
};

/// Writes a plan as the document `gpusched.serving-plan`, version 2 (docs/schema).
///
/// GPU types and workloads have the names of the request.
/// @param request the request of this plan
/// @param indent  blanks per level, 0 .. 16; 0 = one line
/// @throws InvalidInput for a plan of another request, and text that is not UTF-8
[[nodiscard]] std::string plan_to_json(const ServingPlan& plan, const ServingRequest& request,
                                       const PlanExtras& extras = {}, int indent = 2);

/// Writes a curve as the document `gpusched.serving-curve`, version 1. Each point contains its plan.
[[nodiscard]] std::string curve_to_json(const std::vector<CurvePoint>& points, const ServingRequest& request,
                                        int indent = 2);

/// Writes plans by budget as the document `gpusched.serving-sweep`, version 2. Each entry contains its plan.
[[nodiscard]] std::string sweep_to_json(const std::vector<BudgetPlan>& plans, const ServingRequest& request,
                                        int indent = 2);

/// Reads the running replicas for `replan` from a document `gpusched.serving-plan`, version 1 or 2, or from a
/// list of replicas.
///
/// Replicas on GPU types that the request does not have get a deployment without stages; it equals no
/// possible deployment.
/// @param request the request to replan; its GPU types can differ from those of the plan in number and order
/// @throws InvalidInput with every problem and its place
[[nodiscard]] std::vector<PlannedReplicas>
replicas_from_json(std::string_view text, const ServingRequest& request, std::string_view source = "plan");
/// Reads the running replicas from a parsed document.
[[nodiscard]] std::vector<PlannedReplicas> replicas_from_json(const json::Document& document,
                                                              const ServingRequest& request);

/// Reads the running replicas from a file.
/// @throws BackendError if it cannot be read
[[nodiscard]] std::vector<PlannedReplicas> read_replicas(const std::string& path,
                                                         const ServingRequest& request);

/// Reads replicas and the shares that they serve, for `simulate_latency`, from a document
/// `gpusched.serving-plan` or a list.
///
/// Replicas have `model`, `count`, `deployment` or `stages`, and `share`: by kind of requests, the part that
/// they serve together (default 0). `requests_per_s` and `source` of one replica, by kind, default to the
/// values of `plan_serving`. Other fields are ignored.
/// @param options options of the estimates
/// @throws InvalidInput with every problem and its place
[[nodiscard]] std::vector<PlannedReplicas> served_replicas_from_json(std::string_view text,
                                                                     const ServingRequest& request,
                                                                     const EstimateOptions& options = {},
                                                                     std::string_view source = "plan");
/// Reads replicas and their shares from a parsed document.
[[nodiscard]] std::vector<PlannedReplicas> served_replicas_from_json(const json::Document& document,
                                                                     const ServingRequest& request,
                                                                     const EstimateOptions& options = {});

}  // namespace gpusched::serving
