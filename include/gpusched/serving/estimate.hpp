// SPDX-License-Identifier: Apache-2.0
// How fast a deployment serves: a roofline over its layers, or measured times per layer where there are any.
#pragma once

#include <gpusched/core/fields.hpp>
#include <gpusched/serving/catalogue.hpp>
#include <gpusched/serving/deployment.hpp>
#include <gpusched/serving/language_model.hpp>

#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace gpusched::serving {

/// What real kernels reach of the peaks, and what every layer and message costs besides.
///
/// The defaults were fitted to the operator times and collectives published with Vidur (A100, H100, A40); docs/serving.md
/// says how far off they are. `network` is an assumption.
struct Efficiency {
    double compute = 0.7;        ///< of the tensor peak, 0.01 .. 1
    double bandwidth = 0.75;     ///< of the memory's, 0.01 .. 1
    double link = 0.7;           ///< of the link within a machine, 0.01 .. 1
    double network = 0.8;        ///< of the network between machines, 0.01 .. 1
    double layer_s = 4e-5;       ///< seconds a layer takes however small its work, 0 .. 1
    double collective_s = 4e-5;  ///< seconds an all-reduce takes however few its bytes, 0 .. 1
    double message_s = 2e-5;     ///< seconds a message to the next stage takes at least, 0 .. 1
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
    double seconds = 0;  ///< of one layer, >= 0
    bool operator==(const ProfilePoint&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<ProfilePoint>, F&& field) {
    field("size", &ProfilePoint::size);
    field("seconds", &ProfilePoint::seconds);
}

/// Measured times of one layer of one model on a tensor-parallel group; they replace the roofline for its stages, all-reduces
/// included. Between points they are interpolated; below the first they are its time, beyond the last they grow in
/// proportion.
struct LayerProfile {
    std::string model{};
    std::string gpu{};
    int degree = 1;                       ///< >= 1
    std::vector<ProfilePoint> prefill{};  ///< ascending sizes, at least one
    std::vector<ProfilePoint> decode{};   ///< ascending sizes, at least one
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
    Efficiency efficiency{};  ///< what real kernels reach of the peaks, see there
    double memory_fraction =
        usual_memory_fraction;             ///< of a GPU's memory for weights and KV cache, 0.05 .. 1
    int max_batch = 256;                   ///< requests decoded together by a replica, >= 1
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

/// Requests of one kind.
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

/// What a replica does with requests of one kind alone. Everything is 0 where it cannot hold one request
/// or its stages are not connected.
struct ThroughputEstimate {
    double requests_per_s = 0;  ///< requests per second
    double batch = 0;           ///< requests in flight, as KV cache and `max_batch` allow
    double prefill_s = 0;       ///< the slowest stage's time for one prompt, or message
    double step_s = 0;          ///< until every request in flight has its next token
    double first_token_s = 0;   ///< a prompt's way through all stages of an idle replica
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

/// Seconds of an all-reduce of `bytes` bytes in a group: collective_s + 2 (d - 1) / d bytes / (link x its rate); 0 for d = 1.
[[nodiscard]] double all_reduce_seconds(const GpuType& gpu, int degree, double bytes,
                                        const Efficiency& efficiency = {});

/// Seconds of one layer on a group for `tokens` new tokens which attend to `context` tokens each (on average), of `sequences`
/// sequences. With d GPUs of F FLOP/s and B byte/s, P matrix weights of b bytes, h the hidden size:
///
///     max(2 P tokens / (d c F), b P / (d e B)) + activations / (e B)
///       + max(4 heads head_size tokens context / (d c F), KV bytes read / (e B)) + layer_s + 2 all-reduces of tokens h bytes
///
/// Prefill is one sequence of n tokens with context n / 2, decode one token per sequence.
[[nodiscard]] double layer_seconds(const LanguageModel& model, const GpuType& gpu, int degree, double tokens,
                                   double context, double sequences, const Efficiency& efficiency = {});

/// Estimates how many requests of one kind a replica serves per second.
///
/// A stage of L layers is busy L t_prefill(input) for a prompt, and (output - 1) steps are shared by the batch: B requests
/// in flight, limited by KV cache (input + output / 2 tokens each on average; one request must fit whole) and `max_batch`,
/// are m = min(stages, B) micro-batches which follow each other through the stages; a step takes
/// max(m max_s t_s, sum_s (t_s + hop_s)). Requests/s = 1 / (max_s max(prefill_s, hop_s) + (output - 1) step / B): a stage works
/// on the next prompt while the activations of one are sent.
///
/// Source: arXiv 2502.00722, App. L (prefill by the sum of latencies, decode by one latency for the batch, plus the pipeline's
/// communication).
/// @throws InvalidInput for malformed models, types, options and shapes, and stages that name no GPU type
/// Complexity: O(stages).
[[nodiscard]] ThroughputEstimate estimate_throughput(const LanguageModel& model,
                                                     std::span<const GpuType> gpus,
                                                     const Deployment& deployment, const RequestShape& shape,
                                                     const EstimateOptions& options = {});

}  // namespace gpusched::serving
