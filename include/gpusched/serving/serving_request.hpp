// SPDX-License-Identifier: Apache-2.0
// What a serving plan is asked for.
#pragma once

#include <gpusched/core/fields.hpp>
#include <gpusched/serving/deployment.hpp>
#include <gpusched/serving/estimate.hpp>
#include <gpusched/serving/latency_targets.hpp>
#include <gpusched/serving/measurements.hpp>

#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace gpusched::serving {

/// Requests of one shape to one model.
struct ServingWorkload {
    std::string name{};    ///< unique within the model
    RequestShape shape{};  ///< tokens in and out
    double requests = 0;   ///< how many, >= 0: a batch that is there at once
    double rate = 0;       ///< or how many arrive per second, >= 0; a request has numbers or rates, not both
    LatencyTargets targets{};  ///< with a rate: what its latencies must not exceed
    bool operator==(const ServingWorkload&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<ServingWorkload>, F&& field) {
    field("name", &ServingWorkload::name);
    field("shape", &ServingWorkload::shape);
    field("requests", &ServingWorkload::requests);
    field("rate", &ServingWorkload::rate, within(0.0, detail::largest_finite));
    field("targets", &ServingWorkload::targets);
}

/// A language model and its workloads.
struct ServedModel {
    LanguageModel model{};
    std::vector<ServingWorkload> workloads{};
    bool operator==(const ServedModel&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<ServedModel>, F&& field) {
    field("model", &ServedModel::model);
    field("workloads", &ServedModel::workloads);
}

/// What of a GPU type can be rented on which terms, besides its price and number.
struct RentalTerms {
    int minimum = 0;  ///< GPUs: none, or at least so many, >= 0; in whole machines rounded up
    std::optional<double>
        spot_price{};        ///< $/h for one that may be taken back, >= 0; absent = there are none
    int spot_available = 0;  ///< GPUs at that price, besides the others, >= 0
    bool operator==(const RentalTerms&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<RentalTerms>, F&& field) {
    field("minimum", &RentalTerms::minimum, at_least(0), Since{2});
    field("spot_price", &RentalTerms::spot_price, within(0.0, detail::largest_finite), Since{2});
    field("spot_available", &RentalTerms::spot_available, at_least(0), Since{2});
}

/// What is to be planned.
struct ServingRequest {
    std::vector<GpuType> gpus{};   ///< each with a price
    std::vector<int> available{};  ///< of each type, >= 0
    double budget = 0;             ///< $/h, >= 0; with rates, infinity = whatever it costs
    std::vector<ServedModel> models{};
    std::vector<MeasuredThroughput> measured{};
    std::vector<RentalTerms> terms{};  ///< empty, or one per GPU type
    bool operator==(const ServingRequest&) const = default;

    /// Whether some workload has a rate.
    [[nodiscard]] bool has_rates() const noexcept;
};
template <class F>
constexpr void visit_fields(std::type_identity<ServingRequest>, F&& field) {
    field("gpus", &ServingRequest::gpus);
    field("available", &ServingRequest::available);
    field("budget", &ServingRequest::budget);
    field("models", &ServingRequest::models);
    field("measured", &ServingRequest::measured);
    field("terms", &ServingRequest::terms);
}

/// @throws InvalidInput with everything that is wrong
void validate(const ServingRequest& request);

}  // namespace gpusched::serving
