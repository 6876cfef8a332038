// SPDX-License-Identifier: Apache-2.0
// Throughput of a deployment: estimated from measurements of engines, or from measured times per layer.
#pragma once

#include <gpusched/core/fields.hpp>
#include <gpusched/serving/catalogue.hpp>
#include <gpusched/serving/deployment.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace gpusched::serving {

enum class Engine : std::uint8_t { vllm, sglang, trtllm };

/// An end of the error bands of estimates. Plans for `p90` keep their targets if all times are as long as the
/// 90th percentile of comparable measurements.
enum class EstimateError : std::uint8_t { none, p10, p90 };

/// The error of one output: 80 % of comparable measurements were `low` to `high` times the estimate.
struct ErrorBand {
    double low = 0;      ///< 10th percentile of measured / estimated
    double high = 0;     ///< 90th percentile of measured / estimated
    std::string cell{};  ///< the comparable measurements, such as `moe hopper vllm`; `all` if none are closer
    int n = 0;           ///< number of these measurements
    bool operator==(const ErrorBand&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<ErrorBand>, F&& field) {
    field("low", &ErrorBand::low);
    field("high", &ErrorBand::high);
    field("cell", &ErrorBand::cell);
    field("n", &ErrorBand::n);
}

/// One point of a measured table.
struct ProfilePoint {
    double size = 0;     ///< tokens of a prompt, or requests in a decode batch, > 0
    double seconds = 0;  ///< seconds of one layer, >= 0
    bool operator==(const ProfilePoint&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<ProfilePoint>, F&& field) {
    field("size", &ProfilePoint::size);
    field("seconds", &ProfilePoint::seconds);
}

/// Measured times of one layer of one model on a tensor-parallel group, all-reduces included.
///
/// They replace the estimate for stages of this type and degree. Times are interpolated between points. Below
/// the first point its time counts; beyond the last point times grow in proportion to the size.
struct LayerProfile {
    std::string model{};                  ///< name of the language model
    std::string gpu{};                    ///< name of the GPU type
    int degree = 1;                       ///< tensor-parallel degree, >= 1
    std::vector<ProfilePoint> prefill{};  ///< by tokens of a prompt, ascending, at least one
    std::vector<ProfilePoint> decode{};   ///< by requests of a batch, ascending, at least one
    bool operator==(const LayerProfile&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<LayerProfile>, F&& field) {
    field("model", &LayerProfile::model, Required{});
    field("gpu", &LayerProfile::gpu, Required{});
    field("degree", &LayerProfile::degree, at_least(1));
    field("prefill", &LayerProfile::prefill);
    field("decode", &LayerProfile::decode);
}

/// How throughput is estimated.
struct EstimateOptions {
    Engine engine = Engine::vllm;               ///< the engine; `trtllm` is TensorRT-LLM
    EstimateError error = EstimateError::none;  ///< the times of this end of the error bands
    /// Fraction of a GPU's memory for weights and KV cache, 0.05 .. 1.
    double memory_fraction = usual_memory_fraction;
    int max_batch = 256;      ///< most requests that a replica decodes together, >= 1
    double network = 0.8;     ///< fraction of the network between machines that messages reach, 0.01 .. 1
    double message_s = 2e-5;  ///< fixed seconds per message to the next stage, 0 .. 1
    std::vector<LayerProfile> profiles{};  ///< at most one per model, GPU type and degree
    bool operator==(const EstimateOptions&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<EstimateOptions>, F&& field) {
    field("engine", &EstimateOptions::engine);
    field("error", &EstimateOptions::error);
    field("memory_fraction", &EstimateOptions::memory_fraction, memory_fractions);
    field("max_batch", &EstimateOptions::max_batch, at_least(1));
    field("network", &EstimateOptions::network, within(0.01, 1.0));
    field("message_s", &EstimateOptions::message_s, within(0.0, 1.0));
    field("profiles", &EstimateOptions::profiles);
}

/// @throws InvalidInput with everything out of range
void validate(const EstimateOptions& options);

/// The tokens of a kind of requests.
struct RequestShape {
    int input = 0;   ///< tokens of the prompt, >= 1
    int output = 0;  ///< tokens generated, >= 1
    bool operator==(const RequestShape&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<RequestShape>, F&& field) {
    field("input", &RequestShape::input, Required{}, at_least(1));
    field("output", &RequestShape::output, Required{}, at_least(1));
}

/// The estimate for a replica that serves one kind of requests. All fields are 0 if it cannot hold one
/// request or its stages are not connected.
struct ThroughputEstimate {
    double requests_per_s = 0;  ///< requests per second
    double batch = 0;           ///< requests in flight, limited by KV cache and `max_batch`
    double prefill_s = 0;       ///< seconds that one prompt takes of the slowest stage, or of a message
    double step_s = 0;          ///< seconds until every request in flight has its next token
    double first_token_s = 0;   ///< seconds to the first token on an idle replica
    bool operator==(const ThroughputEstimate&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<ThroughputEstimate>, F&& field) {
    field("requests_per_s", &ThroughputEstimate::requests_per_s);
    field("batch", &ThroughputEstimate::batch);
    field("prefill_s", &ThroughputEstimate::prefill_s);
    field("step_s", &ThroughputEstimate::step_s);
    field("first_token_s", &ThroughputEstimate::first_token_s);
}

/// Returns the mean seconds of a layer on a tensor-parallel group, all-reduces included: a prompt of `tokens`
/// tokens with `context` tokens before each on average or, unless `tokens` exceeds `sequences`, one token for
/// each of `tokens` sequences with `context` tokens in the cache.
[[nodiscard]] double layer_seconds(const LanguageModel& model, const GpuType& gpu, int degree, double tokens,
                                   double context, double sequences, const EstimateOptions& options = {});

/// Estimates how many requests of one kind a replica serves per second.
///
/// The times of a layer are those of `predict`, for a recent release of the engine. B requests are in flight,
/// limited by `max_batch` and the KV cache: input + output / 2 tokens each on average, and one request must
/// fit completely. They form m = min(stages, B) micro-batches that follow each other through the stages. A
/// step takes max(m max_s t_s, sum_s (t_s + hop_s)). A stage works on the next prompt while the activations
/// of one are sent, so requests/s = 1 / (max_s max(prefill_s, hop_s) + (output - 1) step / B).
///
/// Source of the pipeline: arXiv 2502.00722, App. L.
/// @throws InvalidInput for malformed models, types, options and shapes, and stages of unknown GPU types
///     Complexity: O(stages).
[[nodiscard]] ThroughputEstimate estimate_throughput(const LanguageModel& model,
                                                     std::span<const GpuType> gpus,
                                                     const Deployment& deployment, const RequestShape& shape,
                                                     const EstimateOptions& options = {});

/// Parses a CSV table with two columns, size and time, as in the Helix profiles.
///
/// Ignored are spaces around numbers, empty lines, lines that begin with #, one line of column names before
/// the first point, a byte order mark, and points of size 0.
///
/// @param unit_s  seconds of one unit of time, > 0 (milliseconds by default)
/// @param source  the name of the text in messages
/// @return points by ascending size, at least one
/// @throws InvalidInput with the first ten lines that are malformed, out of range (size and time >= 0 and
///     finite) or out of order, as `source:line: column: ...`; for a table without points Complexity:
///     O(bytes).
[[nodiscard]] std::vector<ProfilePoint> parse_profile_csv(std::string_view text, double unit_s = 1e-3,
                                                          std::string_view source = "<profile>");

/// Reads a profile from two files: prompts (tokens, time of one layer) and decode batches (requests, time of
/// one layer).
///
/// @throws BackendError if a file cannot be read; InvalidInput as `parse_profile_csv`, with the path as
///     source
[[nodiscard]] LayerProfile read_layer_profile(const std::string& prefill_path, const std::string& decode_path,
                                              const std::string& model, const std::string& gpu,
                                              int degree = 1, double unit_s = 1e-3);

}  // namespace gpusched::serving
