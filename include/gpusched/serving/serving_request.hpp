// SPDX-License-Identifier: Apache-2.0
// ServingRequest: the GPUs, models, workloads, latency targets and measurements that a plan is made for, and
// its documents `gpusched.serving-request`.
#pragma once

#include <gpusched/core/fields.hpp>
#include <gpusched/serving/catalogue.hpp>
#include <gpusched/serving/deployment.hpp>
#include <gpusched/serving/estimate.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace gpusched::json {
class Document;
}

namespace gpusched::serving {

/// The source of a number of a plan.
enum class Source : std::uint8_t {
    measured,    ///< a row of `measured`
    calibrated,  ///< an estimate times the factor measured for this GPU type and model
    estimated,   ///< an estimate; no measurement of this GPU type and model exists
};

/// A measured throughput, or a load at which latencies were measured. It takes precedence over every
/// estimate.
///
/// A deployment and workload can have several rows with different loads; the highest load counts as the
/// throughput.
struct MeasuredThroughput {
    std::string model{};        ///< name of the language model
    std::string deployment{};   ///< name as in `enumerate_deployments`, such as `H100 4x2`
    std::string workload{};     ///< name of the workload
    double requests_per_s = 0;  ///< requests/s, >= 0; 0 = cannot serve
    /// Seconds to the first token at this load, as the target's percentile, > 0.
    std::optional<double> ttft_s{};
    std::optional<double> tpot_s{};  ///< seconds per further token at this load, likewise, > 0
    bool operator==(const MeasuredThroughput&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<MeasuredThroughput>, F&& field) {
    field("model", &MeasuredThroughput::model, Required{});
    field("deployment", &MeasuredThroughput::deployment, Required{});
    field("workload", &MeasuredThroughput::workload, Required{});
    field("requests_per_s", &MeasuredThroughput::requests_per_s, Required{}, detail::not_negative);
    field("ttft_s", &MeasuredThroughput::ttft_s, Since{2}, detail::positive);
    field("tpot_s", &MeasuredThroughput::tpot_s, Since{2}, detail::positive);
}

/// Upper limits on percentiles of latencies, in seconds, each > 0; absent = no limit.
///
/// TTFT is the time from arrival to the first token, waiting included. TPOT (time per output token) is the
/// mean time between the tokens of one request after its first token. The latency is the time from arrival to
/// the last token. With `ttft_p90_s` = 0.5, 90 % of the requests have their first token within 0.5 s.
struct LatencyTargets {
    std::optional<double> ttft_p50_s{};     ///< seconds to the first token, median
    std::optional<double> ttft_p90_s{};     ///< seconds to the first token, 90th percentile
    std::optional<double> ttft_p95_s{};     ///< seconds to the first token, 95th percentile
    std::optional<double> ttft_p99_s{};     ///< seconds to the first token, 99th percentile
    std::optional<double> tpot_p50_s{};     ///< seconds per further token, median
    std::optional<double> tpot_p90_s{};     ///< seconds per further token, 90th percentile
    std::optional<double> tpot_p95_s{};     ///< seconds per further token, 95th percentile
    std::optional<double> tpot_p99_s{};     ///< seconds per further token, 99th percentile
    std::optional<double> latency_p50_s{};  ///< seconds to the last token, median
    std::optional<double> latency_p90_s{};  ///< seconds to the last token, 90th percentile
    std::optional<double> latency_p95_s{};  ///< seconds to the last token, 95th percentile
    std::optional<double> latency_p99_s{};  ///< seconds to the last token, 99th percentile
    bool operator==(const LatencyTargets&) const = default;

    [[nodiscard]] bool any() const noexcept { return *this != LatencyTargets{}; }
};
template <class F>
constexpr void visit_fields(std::type_identity<LatencyTargets>, F&& field) {
    field("ttft_p50_s", &LatencyTargets::ttft_p50_s, detail::positive);
    field("ttft_p90_s", &LatencyTargets::ttft_p90_s, detail::positive);
    field("ttft_p95_s", &LatencyTargets::ttft_p95_s, detail::positive);
    field("ttft_p99_s", &LatencyTargets::ttft_p99_s, detail::positive);
    field("tpot_p50_s", &LatencyTargets::tpot_p50_s, detail::positive);
    field("tpot_p90_s", &LatencyTargets::tpot_p90_s, detail::positive);
    field("tpot_p95_s", &LatencyTargets::tpot_p95_s, detail::positive);
    field("tpot_p99_s", &LatencyTargets::tpot_p99_s, detail::positive);
    field("latency_p50_s", &LatencyTargets::latency_p50_s, detail::positive);
    field("latency_p90_s", &LatencyTargets::latency_p90_s, detail::positive);
    field("latency_p95_s", &LatencyTargets::latency_p95_s, detail::positive);
    field("latency_p99_s", &LatencyTargets::latency_p99_s, detail::positive);
}

/// Returns the targets of `kind`, replaced by those that `call` sets.
[[nodiscard]] inline LatencyTargets merged(LatencyTargets kind, const LatencyTargets& call) {
    visit_fields(std::type_identity<LatencyTargets>{}, [&](const char*, auto member, const auto&...) {
        if (call.*member) kind.*member = call.*member;
    });
    return kind;
}

/// Lengths of requests, and the part of the requests that have them.
struct WeightedShape {
    RequestShape shape{};  ///< tokens in and out
    double weight =
        1;  ///< number of requests with these lengths, in proportion to the others, > 0, at most 1e15
    bool operator==(const WeightedShape&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<WeightedShape>, F&& field) {
    field("shape", &WeightedShape::shape, Inlined{});
    field("weight", &WeightedShape::weight, more_than(0.0, 1e15));
}

/// Requests of one kind to one model: all of the same lengths, or of the lengths of a distribution or trace.
struct ServingWorkload {
    std::string name{};    ///< unique within the model
    RequestShape shape{};  ///< tokens in and out of every request; 0 with `lengths`
    double requests = 0;   ///< a batch of this many requests, >= 0
    double rate = 0;       ///< or arrivals per second, >= 0; all workloads have numbers, or all have rates
    LatencyTargets targets{};  ///< limits on the latencies of all requests of the workload; needs a rate
    std::vector<WeightedShape> lengths{};  ///< lengths of the requests; empty = all have `shape`
    /// Requests of the trace that `lengths` lacks, >= 0: they failed, or have no prompt or no answer.
    int left_out = 0;
    double prefix_hits = 0;  ///< part of each prompt that is in the prefix cache, 0 .. 0.99
    /// Seconds at which the requests of `lengths` arrive, one for each, ascending; simulations scale them to the
    /// rate and repeat them. Empty = a Poisson process.
    std::vector<double> arrivals{};
    bool operator==(const ServingWorkload&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<ServingWorkload>, F&& field) {
    field("name", &ServingWorkload::name);
    field("shape", &ServingWorkload::shape);
    field("requests", &ServingWorkload::requests);
    field("rate", &ServingWorkload::rate, detail::not_negative);
    field("targets", &ServingWorkload::targets);
    field("lengths", &ServingWorkload::lengths);
    field("left_out", &ServingWorkload::left_out, at_least(0));
    field("prefix_hits", &ServingWorkload::prefix_hits, within(0.0, 0.99));
    field("arrivals", &ServingWorkload::arrivals);
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

/// Reads a request from a document of version 1 or 2 (docs/schema, docs/serving.md); format and version are
/// optional.
///
/// GPU types, models and workloads are objects by name. A workload has `input` and `output`, or `lengths`, or
/// `trace`, the path of a file that `read_llm_trace` reads. A trace without a rate has its own mean rate, and
/// with `own_arrivals` its own arrivals. A type of the catalogue or of Table 1 and a known
/// model need no fields; fields of the document replace theirs. Prices default to those of Table 1. Targets
/// of all kinds are merged into the targets of each kind.
/// @param text   UTF-8, at most `largest_document` bytes
/// @param source the start of every message
/// @param rates  arrival rates that replace those of the document
/// @throws InvalidInput with every problem and its place; a trace is one, since a text has no folder
[[nodiscard]] ServingRequest request_from_json(std::string_view text, std::string_view source = "request",
                                               const RequestRates& rates = {});
/// Reads a request from a parsed document.
/// @param folder the folder of relative paths of traces; absent = a trace is an error
[[nodiscard]] ServingRequest request_from_json(const json::Document& document, const RequestRates& rates = {},
                                               const std::optional<std::string>& folder = {});

/// Reads a request from a file: YAML if its name ends in .yaml or .yml, else JSON. Paths of traces are
/// relative to its folder.
/// @throws BackendError if it cannot be read, and for YAML if the library was built without libyaml
[[nodiscard]] ServingRequest read_request(const std::string& path, const RequestRates& rates = {});

/// Writes a request as a document of version 2, which is read as the same request.
///
/// It contains every value that the reader took from the catalogue, Table 1, traces or defaults. `available` counts
/// GPUs, and every kind has its targets.
/// @param indent blanks per level, 0 .. 16; 0 = one line
/// @throws InvalidInput for an invalid request, and text that is not UTF-8
[[nodiscard]] std::string request_to_json(const ServingRequest& request, int indent = 2);

/// Writes the document of `request_to_json` to a file. @throws BackendError if it cannot be written
void write_request(const ServingRequest& request, const std::string& path);

}  // namespace gpusched::serving
