// SPDX-License-Identifier: Apache-2.0
// ServingRequest: the GPUs, models, workloads, latency targets and measurements that a plan is made for.
#pragma once

#include <gpusched/core/fields.hpp>
#include <gpusched/serving/catalogue.hpp>
#include <gpusched/serving/deployment.hpp>
#include <gpusched/serving/estimate.hpp>
#include <gpusched/serving/measurements.hpp>

#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace gpusched::serving {

/// Upper limits on percentiles of latencies, in seconds, each > 0; absent = no limit.
///
/// TTFT is the time from arrival to the first token, waiting included. TPOT (time per output token) is the
/// mean time between the tokens of one request after its first token. With `ttft_p90_s` = 0.5, 90 % of the
/// requests have their first token within 0.5 s.
struct LatencyTargets {
    std::optional<double> ttft_p50_s{};  ///< seconds to the first token, median
    std::optional<double> ttft_p90_s{};  ///< seconds to the first token, 90th percentile
    std::optional<double> ttft_p99_s{};  ///< seconds to the first token, 99th percentile
    std::optional<double> tpot_p50_s{};  ///< seconds per further token, median
    std::optional<double> tpot_p90_s{};  ///< seconds per further token, 90th percentile
    std::optional<double> tpot_p99_s{};  ///< seconds per further token, 99th percentile
    bool operator==(const LatencyTargets&) const = default;

    [[nodiscard]] bool any() const noexcept { return *this != LatencyTargets{}; }
};
template <class F>
constexpr void visit_fields(std::type_identity<LatencyTargets>, F&& field) {
    field("ttft_p50_s", &LatencyTargets::ttft_p50_s, detail::positive);
    field("ttft_p90_s", &LatencyTargets::ttft_p90_s, detail::positive);
    field("ttft_p99_s", &LatencyTargets::ttft_p99_s, detail::positive);
    field("tpot_p50_s", &LatencyTargets::tpot_p50_s, detail::positive);
    field("tpot_p90_s", &LatencyTargets::tpot_p90_s, detail::positive);
    field("tpot_p99_s", &LatencyTargets::tpot_p99_s, detail::positive);
}

/// Returns the targets of `kind`, replaced by those that `call` sets.
[[nodiscard]] inline LatencyTargets merged(LatencyTargets kind, const LatencyTargets& call) {
    visit_fields(std::type_identity<LatencyTargets>{}, [&](const char*, auto member, const auto&...) {
        if (call.*member) kind.*member = call.*member;
    });
    return kind;
}

/// Requests of one shape to one model.
struct ServingWorkload {
    std::string name{};    ///< unique within the model
    RequestShape shape{};  ///< tokens in and out
    double requests = 0;   ///< a batch of this many requests, >= 0
    double rate = 0;       ///< or arrivals per second, >= 0; all workloads have numbers, or all have rates
    LatencyTargets targets{};  ///< limits on the latencies; needs a rate
    bool operator==(const ServingWorkload&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<ServingWorkload>, F&& field) {
    field("name", &ServingWorkload::name);
    field("shape", &ServingWorkload::shape);
    field("requests", &ServingWorkload::requests);
    field("rate", &ServingWorkload::rate, detail::not_negative);
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

/// Further rental terms of a GPU type: a minimum and spot GPUs.
struct RentalTerms {
    int minimum = 0;  ///< rent none or at least this many GPUs, >= 0; rounded up to whole machines
    /// $/h of a spot GPU, which the provider can take back, >= 0; absent = none.
    std::optional<double> spot_price{};
    int spot_available = 0;  ///< spot GPUs, in addition to the others, >= 0
    bool operator==(const RentalTerms&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<RentalTerms>, F&& field) {
    field("minimum", &RentalTerms::minimum, at_least(0), Since{2});
    field("spot_price", &RentalTerms::spot_price, detail::not_negative, Since{2});
    field("spot_available", &RentalTerms::spot_available, at_least(0), Since{2});
}

/// The input of the planner: GPUs, budget, models with their workloads, measurements.
struct ServingRequest {
    std::vector<GpuType> gpus{};                 ///< each with a price
    std::vector<int> available{};                ///< GPUs of each type, >= 0
    double budget = 0;                           ///< $/h, >= 0; with rates, infinity = no limit
    std::vector<ServedModel> models{};           ///< names are unique
    std::vector<MeasuredThroughput> measured{};  ///< they replace and calibrate estimates
    std::vector<RentalTerms> terms{};            ///< empty, or one per GPU type
    bool operator==(const ServingRequest&) const = default;

    /// Returns whether some workload has a rate.
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

/// Arrival rates that replace those of a request: of all kinds together, or of each kind by name.
///
/// The name of a kind is `KIND`, or `MODEL/KIND` if several models have a kind of this name.
struct RequestRates {
    std::optional<double> all{};  ///< requests/s of all kinds, in the proportions of the request; > 0
    std::map<std::string, double> by_kind{};  ///< requests/s by kind, >= 0; other kinds get 0
    [[nodiscard]] bool any() const noexcept { return all || !by_kind.empty(); }
};

/// @throws InvalidInput with every rate out of range, and if all are 0
void validate(const RequestRates& rates);

/// Returns the request with the rates of all kinds scaled to a total of `rate`.
///
/// Without rates, its numbers of requests are the proportions. A request with one kind needs neither.
/// @throws InvalidInput for a rate that is not above 0, and a request without requests
[[nodiscard]] ServingRequest with_rate(ServingRequest request, double rate);

/// Returns the request with these rates; unchanged if there are none.
/// @throws InvalidInput as `validate` and `with_rate`, for unknown and ambiguous names, and for kinds that
///     are named twice
[[nodiscard]] ServingRequest with_rates(ServingRequest request, const RequestRates& rates);

}  // namespace gpusched::serving
