// SPDX-License-Identifier: Apache-2.0
// Throughput of a deployment: a roofline over its layers, or measured times per layer.
#pragma once

#include <gpusched/core/fields.hpp>
#include <gpusched/serving/catalogue.hpp>
#include <gpusched/serving/deployment.hpp>

#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace gpusched::serving {

/// The fractions of the peaks that real kernels reach, and fixed costs per layer and message.
///
/// The defaults were fitted to the operator times and collectives published with Vidur (A100, H100, A40);
/// docs/serving.md gives their errors. `network` is an assumption.
struct Efficiency {
    double compute = 0.7;        ///< fraction of the tensor peak, 0.01 .. 1
    double bandwidth = 0.75;     ///< fraction of the memory bandwidth, 0.01 .. 1
    double link = 0.7;           ///< fraction of the link within a machine, 0.01 .. 1
    double network = 0.8;        ///< fraction of the network between machines, 0.01 .. 1
    double layer_s = 4e-5;       ///< fixed seconds per layer, 0 .. 1
    double collective_s = 4e-5;  ///< fixed seconds per all-reduce, 0 .. 1
    double message_s = 2e-5;     ///< fixed seconds per message to the next stage, 0 .. 1
    bool operator==(const Efficiency&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<Efficiency>, F&& field) {
    field("compute", &Efficiency::compute, within(0.01, 1.0));
    field("bandwidth", &Efficiency::bandwidth, within(0.01, 1.0));
    field("link", &Efficiency::link, within(0.01, 1.0));
    field("network", &Efficiency::network, within(0.01, 1.0));
    field("layer_s", &Efficiency::layer_s, within(0.0, 1.0));
    field("collective_s", &Efficiency::collective_s, within(0.0, 1.0));
    field("message_s", &Efficiency::message_s, within(0.0, 1.0));
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
/// They replace the roofline for stages of this type and degree. Times are interpolated between points. Below
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
    Efficiency efficiency{};  ///< fractions of the peaks and fixed costs
    /// Fraction of a GPU's memory for weights and KV cache, 0.05 .. 1.
    double memory_fraction = usual_memory_fraction;
    int max_batch = 256;                   ///< most requests that a replica decodes together, >= 1
    std::vector<LayerProfile> profiles{};  ///< at most one per model, GPU type and degree
    bool operator==(const EstimateOptions&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<EstimateOptions>, F&& field) {
    field("efficiency", &EstimateOptions::efficiency);
    field("memory_fraction", &EstimateOptions::memory_fraction, memory_fractions);
    field("max_batch", &EstimateOptions::max_batch, at_least(1));
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
    double prefill_s = 0;       ///< seconds of the slowest stage, or message, for one prompt
    double step_s = 0;          ///< seconds until every request in flight has its next token
    double first_token_s = 0;   ///< seconds of a prompt through all stages of an idle replica
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

/// Returns the seconds of an all-reduce of `bytes` bytes in a group of d GPUs.
///
/// This is collective_s + 2 (d - 1) / d bytes / (link x its rate); 0 for d = 1.
[[nodiscard]] double all_reduce_seconds(const GpuType& gpu, int degree, double bytes,
                                        const Efficiency& efficiency = {});

/// Returns the seconds of one layer on a group for `tokens` new tokens of `sequences` sequences.
///
/// Each new token attends to `context` tokens on average. With d GPUs of F FLOP/s and B byte/s, P matrix
/// weights of b bytes, h the hidden size, c and e the efficiencies of compute and bandwidth:
///
///     max(2 P tokens / (d c F), b P / (d e B)) + activations / (e B)
///       + max(4 heads head_size tokens context / (d c F), KV bytes read / (e B)) + layer_s
///       + 2 all-reduces of tokens h bytes
///
/// Prefill is one sequence of n tokens with context n / 2; decode is one token per sequence.
[[nodiscard]] double layer_seconds(const LanguageModel& model, const GpuType& gpu, int degree, double tokens,
                                   double context, double sequences, const Efficiency& efficiency = {});

/// Estimates how many requests of one kind a replica serves per second.
///
/// B requests are in flight, limited by `max_batch` and the KV cache: input + output / 2 tokens each on
/// average, and one request must fit completely. They form m = min(stages, B) micro-batches that follow each
/// other through the stages. A step takes max(m max_s t_s, sum_s (t_s + hop_s)). A stage works on the next
/// prompt while the activations of one are sent, so requests/s = 1 / (max_s max(prefill_s, hop_s) + (output -
/// 1) step / B).
///
/// Source: arXiv 2502.00722, App. L (prefill by the sum of latencies, decode by one latency for the batch,
/// plus the communication of the pipeline).
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
